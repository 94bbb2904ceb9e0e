BEGIN TRANSACTION;

CREATE TABLE samples (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  weight INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('alpha', 'water', 65, 80),
  ('beta', 'air', 69, 73),
  ('gamma', 'soil', 59, 43),
  ('delta', 'water', 42, 90),
  ('theta', 'air', 23, 96),
  ('sigma', 'air', 63, 71),
  ('omega', 'soil', 14, 51),
  ('kappa', 'water', 46, 94);

CREATE TABLE devices (
  name TEXT NOT NULL,
  room TEXT NOT NULL,
  power INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('laser', 'east', 38, 48),
  ('probe', 'north', 64, 10),
  ('scale', 'east', 78, 12),
  ('pump', 'south', 45, 75),
  ('oven', 'south', 67, 46),
  ('mixer', 'east', 11, 13),
  ('press', 'north', 54, 87),
  ('scope', 'north', 54, 52);

CREATE TABLE runs (
  state TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('new', 6, 68),
  ('new', 74, 11),
  ('new', 73, 33),
  ('failed', 48, 14),
  ('new', 56, 57),
  ('done', 65, 99),
  ('done', 87, 54),
  ('done', 26, 51),
  ('done', 80, 39),
  ('failed', 81, 80),
  ('failed', 39, 24),
  ('failed', 3, 45),
  ('new', 15, 22);

COMMIT;
