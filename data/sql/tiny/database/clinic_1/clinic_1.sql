BEGIN TRANSACTION;

CREATE TABLE teachers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  power INTEGER NOT NULL,
  amount INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('anna', 'oslo', 72, 40),
  ('ben', 'paris', 80, 80),
  ('carl', 'oslo', 38, 49),
  ('dora', 'oslo', 56, 61),
  ('eva', 'paris', 59, 84),
  ('finn', 'rome', 16, 24),
  ('gina', 'rome', 9, 24),
  ('hugo', 'paris', 16, 25),
  ('ivan', 'oslo', 81, 35),
  ('jane', 'rome', 26, 56);

CREATE TABLE samples (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  minutes INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('laser', 'garden', 64, 88),
  ('probe', 'office', 52, 84),
  ('scale', 'office', 36, 74),
  ('pump', 'garden', 53, 61),
  ('oven', 'home', 75, 57),
  ('mixer', 'garden', 63, 55),
  ('press', 'office', 97, 5),
  ('scope', 'home', 10, 30);

CREATE TABLE orders (
  level TEXT NOT NULL,
  score INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('easy', 89, 12),
  ('easy', 67, 18),
  ('medium', 43, 26),
  ('hard', 60, 26),
  ('medium', 27, 43),
  ('easy', 62, 25),
  ('hard', 66, 50),
  ('medium', 21, 30),
  ('easy', 50, 8),
  ('easy', 81, 18),
  ('medium', 22, 9),
  ('easy', 41, 12),
  ('medium', 95, 54),
  ('easy', 90, 40),
  ('hard', 35, 50),
  ('easy', 59, 51),
  ('hard', 92, 38),
  ('easy', 56, 60);

COMMIT;
