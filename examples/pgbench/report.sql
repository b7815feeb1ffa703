\set first random(1, 900000)
SELECT bid, count(DISTINCT abalance) FROM pgbench_accounts
WHERE aid BETWEEN :first AND :first + 20000 GROUP BY bid;
