BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  stock INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('anna', 'water', 54, 69),
  ('ben', 'soil', 59, 74),
  ('carl', 'water', 23, 76),
  ('dora', 'water', 0, 50),
  ('eva', 'soil', 54, 88),
  ('finn', 'air', 24, 70),
  ('gina', 'soil', 15, 57),
  ('hugo', 'soil', 10, 89),
  ('ivan', 'soil', 33, 64),
  ('jane', 'air', 49, 96);

CREATE TABLE products (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  seats INTEGER NOT NULL,
  quantity INTEGER NOT NULL
);
INSERT INTO products VALUES
  ('alpha', 'art', 16, 23),
  ('beta', 'math', 53, 1),
  ('gamma', 'music', 25, 22),
  ('delta', 'math', 41, 9),
  ('theta', 'art', 32, 10),
  ('sigma', 'music', 15, 18),
  ('omega', 'music', 51, 8),
  ('kappa', 'music', 20, 3);

CREATE TABLE runs (
  house TEXT NOT NULL,
  salary INTEGER NOT NULL,
  credits INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('blue', 71, 8),
  ('blue', 69, 2),
  ('green', 77, 10),
  ('red', 68, 5),
  ('green', 30, 8),
  ('blue', 32, 6),
  ('red', 81, 8),
  ('blue', 64, 4),
  ('green', 71, 10),
  ('blue', 63, 4),
  ('green', 90, 5),
  ('red', 47, 12),
  ('red', 42, 5),
  ('green', 62, 8),
  ('green', 83, 3);

COMMIT;
