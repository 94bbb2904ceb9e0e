BEGIN TRANSACTION;

CREATE TABLE samples (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  weight INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('alpha', 'soil', 5, 74),
  ('beta', 'air', 44, 61),
  ('gamma', 'air', 44, 68),
  ('delta', 'air', 7, 61),
  ('theta', 'water', 24, 61),
  ('sigma', 'water', 2, 52),
  ('omega', 'soil', 54, 86),
  ('kappa', 'water', 39, 50);

CREATE TABLE devices (
  name TEXT NOT NULL,
  room TEXT NOT NULL,
  power INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('laser', 'north', 49, 41),
  ('probe', 'east', 57, 58),
  ('scale', 'east', 58, 48),
  ('pump', 'north', 7, 26),
  ('oven', 'north', 59, 36),
  ('mixer', 'south', 65, 12),
  ('press', 'south', 57, 68),
  ('scope', 'north', 76, 32);

CREATE TABLE runs (
  state TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('failed', 64, 21),
  ('new', 51, 27),
  ('done', 70, 19),
  ('done', 39, 29),
  ('new', 20, 61),
  ('new', 21, 79),
  ('new', 57, 87),
  ('failed', 20, 10),
  ('new', 47, 21),
  ('new', 83, 48),
  ('failed', 16, 85),
  ('failed', 15, 92),
  ('new', 28, 63),
  ('new', 52, 40),
  ('failed', 30, 56),
  ('failed', 47, 49);

COMMIT;
