BEGIN TRANSACTION;

CREATE TABLE samples (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  weight INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('alpha', 'water', 8, 85),
  ('beta', 'water', 25, 64),
  ('gamma', 'water', 55, 74),
  ('delta', 'air', 14, 66),
  ('theta', 'air', 11, 79),
  ('sigma', 'soil', 62, 99),
  ('omega', 'air', 44, 71),
  ('kappa', 'soil', 64, 55);

CREATE TABLE devices (
  name TEXT NOT NULL,
  room TEXT NOT NULL,
  power INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('laser', 'north', 18, 36),
  ('probe', 'east', 10, 34),
  ('scale', 'east', 58, 24),
  ('pump', 'south', 76, 45),
  ('oven', 'south', 35, 6),
  ('mixer', 'east', 52, 43),
  ('press', 'north', 47, 76),
  ('scope', 'south', 56, 70);

CREATE TABLE runs (
  state TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('done', 84, 96),
  ('done', 56, 28),
  ('done', 52, 83),
  ('failed', 36, 96),
  ('failed', 22, 79),
  ('new', 75, 48),
  ('new', 32, 59),
  ('done', 24, 21),
  ('new', 54, 74),
  ('failed', 60, 14),
  ('done', 87, 60),
  ('new', 21, 67),
  ('failed', 40, 56),
  ('done', 73, 10),
  ('failed', 90, 55),
  ('done', 77, 82),
  ('failed', 39, 70),
  ('done', 5, 34);

COMMIT;
