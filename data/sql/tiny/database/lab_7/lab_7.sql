BEGIN TRANSACTION;

CREATE TABLE samples (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  weight INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('alpha', 'soil', 58, 55),
  ('beta', 'water', 43, 71),
  ('gamma', 'air', 33, 87),
  ('delta', 'water', 7, 52),
  ('theta', 'air', 32, 81),
  ('sigma', 'water', 43, 81),
  ('omega', 'soil', 45, 48),
  ('kappa', 'air', 46, 96);

CREATE TABLE devices (
  name TEXT NOT NULL,
  room TEXT NOT NULL,
  power INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('laser', 'south', 80, 29),
  ('probe', 'east', 49, 89),
  ('scale', 'north', 58, 42),
  ('pump', 'south', 29, 48),
  ('oven', 'east', 91, 69),
  ('mixer', 'south', 23, 65),
  ('press', 'north', 30, 27),
  ('scope', 'north', 53, 19);

CREATE TABLE runs (
  state TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('new', 46, 79),
  ('failed', 83, 18),
  ('failed', 65, 10),
  ('new', 11, 79),
  ('done', 76, 27),
  ('done', 73, 74),
  ('failed', 9, 14),
  ('new', 62, 11),
  ('done', 81, 22),
  ('done', 38, 42),
  ('new', 54, 47);

COMMIT;
