BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  stock INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('anna', 'water', 47, 99),
  ('ben', 'soil', 23, 73),
  ('carl', 'water', 0, 52),
  ('dora', 'air', 21, 93),
  ('eva', 'soil', 20, 41),
  ('finn', 'water', 57, 82),
  ('gina', 'soil', 20, 96),
  ('hugo', 'air', 46, 98),
  ('ivan', 'water', 12, 74),
  ('jane', 'air', 33, 70);

CREATE TABLE products (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  seats INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('alpha', 'art', 19, 18),
  ('beta', 'art', 36, 7),
  ('gamma', 'music', 44, 25),
  ('delta', 'math', 31, 18),
  ('theta', 'music', 10, 4),
  ('sigma', 'math', 21, 12),
  ('omega', 'art', 49, 28),
  ('kappa', 'music', 45, 27);

CREATE TABLE runs (
  house TEXT NOT NULL,
  salary INTEGER NOT NULL,
  credits INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('blue', 39, 4),
  ('green', 58, 7),
  ('green', 90, 2),
  ('green', 81, 9),
  ('green', 74, 1),
  ('green', 31, 8),
  ('green', 81, 10),
  ('blue', 54, 6),
  ('green', 35, 12),
  ('blue', 59, 5),
  ('blue', 65, 7),
  ('red', 51, 3),
  ('green', 68, 12),
  ('red', 49, 7),
  ('red', 52, 11);

COMMIT;
