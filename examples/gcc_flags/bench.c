/* A small mix of loops: a product of matrices, a sieve, a hash, and particles. It prints a checksum. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 300
#define SIEVE 2000000
#define BODIES 64

static double a[N][N], b[N][N], c[N][N];
static unsigned char composite[SIEVE];

static double product(void) {
    double sum = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (i * 7 + j * 3) % 11;
            b[i][j] = (i + j * 5) % 13;
        }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double cell = 0;
            for (int k = 0; k < N; k++) cell += a[i][k] * b[k][j];
            c[i][j] = cell;
            sum += cell;
        }
    return sum;
}

static int primes(void) {
    int count = 0;
    memset(composite, 0, SIEVE);
    for (int i = 2; i < SIEVE; i++) {
        if (composite[i]) continue;
        count++;
        for (long j = (long)i * i; j < SIEVE; j += i) composite[j] = 1;
    }
    return count;
}

static unsigned hash(int length) {
    unsigned found = 2166136261u;
    for (int i = 0; i < length; i++) found = (found ^ (unsigned)(i & 255)) * 16777619u;
    return found;
}

static double particles(int steps) {
    double x[BODIES], v[BODIES], energy = 0;
    for (int i = 0; i < BODIES; i++) x[i] = i, v[i] = 0;
    for (int step = 0; step < steps; step++)
        for (int i = 0; i < BODIES; i++) {
            double force = 0;
            for (int j = 0; j < BODIES; j++) {
                double d = x[j] - x[i];
                force += d / (sqrt(d * d + 0.1) * (d * d + 0.1));
            }
            v[i] += 0.01 * force;
            x[i] += 0.01 * v[i];
        }
    for (int i = 0; i < BODIES; i++) energy += v[i] * v[i];
    return energy;
}

int main(void) {
    printf("%.0f primes %d hash %u energy %.3f\n", product(), primes(), hash(20000000), particles(10000));
    return 0;
}
