BEGIN TRANSACTION;

CREATE TABLE samples (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  weight INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('alpha', 'air', 66, 52),
  ('beta', 'water', 13, 52),
  ('gamma', 'water', 60, 80),
  ('delta', 'air', 55, 79),
  ('theta', 'air', 26, 94),
  ('sigma', 'soil', 33, 52),
  ('omega', 'soil', 9, 86),
  ('kappa', 'soil', 43, 53);

CREATE TABLE devices (
  name TEXT NOT NULL,
  room TEXT NOT NULL,
  power INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('laser', 'north', 77, 45),
  ('probe', 'south', 83, 26),
  ('scale', 'east', 81, 82),
  ('pump', 'east', 34, 79),
  ('oven', 'east', 64, 48),
  ('mixer', 'north', 79, 1),
  ('press', 'south', 88, 74),
  ('scope', 'east', 61, 22);

CREATE TABLE runs (
  state TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('done', 81, 94),
  ('done', 54, 25),
  ('new', 75, 13),
  ('new', 85, 46),
  ('done', 63, 77),
  ('failed', 34, 29),
  ('new', 53, 28),
  ('done', 51, 92),
  ('failed', 80, 24),
  ('new', 61, 92),
  ('done', 57, 45),
  ('failed', 29, 84),
  ('done', 24, 85),
  ('failed', 12, 93),
  ('failed', 53, 78);

COMMIT;
