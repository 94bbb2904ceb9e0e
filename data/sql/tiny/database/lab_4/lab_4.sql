BEGIN TRANSACTION;

CREATE TABLE samples (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  weight INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('alpha', 'air', 39, 66),
  ('beta', 'air', 44, 51),
  ('gamma', 'water', 14, 57),
  ('delta', 'soil', 49, 96),
  ('theta', 'water', 52, 52),
  ('sigma', 'soil', 58, 87),
  ('omega', 'water', 11, 77),
  ('kappa', 'soil', 30, 95);

CREATE TABLE devices (
  name TEXT NOT NULL,
  room TEXT NOT NULL,
  power INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('laser', 'south', 28, 52),
  ('probe', 'north', 92, 43),
  ('scale', 'south', 53, 39),
  ('pump', 'east', 10, 3),
  ('oven', 'south', 76, 85),
  ('mixer', 'east', 34, 74),
  ('press', 'north', 34, 27),
  ('scope', 'east', 87, 18);

CREATE TABLE runs (
  state TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('failed', 66, 96),
  ('done', 43, 23),
  ('new', 63, 54),
  ('done', 77, 92),
  ('new', 56, 50),
  ('done', 16, 92),
  ('failed', 19, 61),
  ('new', 8, 86),
  ('done', 75, 22),
  ('done', 47, 19),
  ('failed', 53, 27),
  ('failed', 63, 17);

COMMIT;
