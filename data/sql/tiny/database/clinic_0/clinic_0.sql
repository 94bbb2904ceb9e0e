BEGIN TRANSACTION;

CREATE TABLE teachers (
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  power INTEGER NOT NULL,
  amount INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('anna', 'rome', 50, 95),
  ('ben', 'oslo', 34, 41),
  ('carl', 'oslo', 65, 79),
  ('dora', 'rome', 72, 65),
  ('eva', 'oslo', 35, 89),
  ('finn', 'paris', 33, 54),
  ('gina', 'rome', 59, 63),
  ('hugo', 'oslo', 81, 96),
  ('ivan', 'rome', 90, 80),
  ('jane', 'paris', 54, 35);

CREATE TABLE samples (
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price INTEGER NOT NULL,
  minutes INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('laser', 'office', 98, 39),
  ('probe', 'office', 73, 41),
  ('scale', 'home', 75, 50),
  ('pump', 'garden', 57, 65),
  ('oven', 'garden', 48, 20),
  ('mixer', 'garden', 48, 14),
  ('press', 'office', 41, 52),
  ('scope', 'home', 75, 79);

CREATE TABLE orders (
  level TEXT NOT NULL,
  score INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO orders VALUES
  ('easy', 61, 55),
  ('easy', 31, 30),
  ('hard', 63, 24),
  ('easy', 90, 20),
  ('easy', 84, 51),
  ('medium', 93, 52),
  ('easy', 23, 30),
  ('easy', 38, 43),
  ('medium', 66, 8),
  ('hard', 72, 24);

COMMIT;
