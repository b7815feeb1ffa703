# Finds the best x with Perl, whose own modules are enough:  perl client.pl http://127.0.0.1:8420 NAME
# The token of the server, if any, is read from NOREGRET_TOKEN.
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP;

my ($url, $name) = @ARGV;
my $token = $ENV{NOREGRET_TOKEN} // "";
my $http = HTTP::Tiny->new(
    default_headers => { "Content-Type" => "application/json", "Authorization" => "Bearer $token" });

sub call {
    my ($method, $path, $body) = @_;
    my $answer = $http->request($method, $url . $path, $body ? { content => encode_json($body) } : {});
    die "$answer->{status}: $answer->{content}\n" unless $answer->{success};
    return decode_json($answer->{content});
}

my $space = { x => { type => "float", low => 0, high => 1 } };
call("POST", "/studies", { name => $name, goal => "minimize", space => $space });
# measurements of the past: telling them again changes nothing
my @past = map { { params => { x => $_ }, value => ($_ - 0.3)**2 } } (0.1, 0.8);
call("POST", "/studies/$name/tell", { trials => \@past });
for my $round (1 .. 12) {
    my $trial = call("POST", "/studies/$name/ask", { client => "perl" })->{trials}[0];
    my $value = ($trial->{params}{x} - 0.3)**2;    # what you would measure
    call("POST", "/studies/$name/trials/$trial->{id}/tell", { value => $value });
}
print encode_json(call("GET", "/studies/$name/best")), "\n";
