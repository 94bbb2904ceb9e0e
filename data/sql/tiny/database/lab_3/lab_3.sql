BEGIN TRANSACTION;

CREATE TABLE samples (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  weight INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('alpha', 'water', 35, 95),
  ('beta', 'water', 8, 47),
  ('gamma', 'soil', 15, 42),
  ('delta', 'air', 61, 89),
  ('theta', 'water', 69, 93),
  ('sigma', 'air', 45, 60),
  ('omega', 'water', 61, 54),
  ('kappa', 'soil', 27, 98);

CREATE TABLE devices (
  name TEXT NOT NULL,
  room TEXT NOT NULL,
  power INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('laser', 'east', 75, 44),
  ('probe', 'south', 79, 62),
  ('scale', 'east', 18, 22),
  ('pump', 'south', 88, 12),
  ('oven', 'north', 49, 63),
  ('mixer', 'east', 7, 59),
  ('press', 'north', 92, 72),
  ('scope', 'north', 33, 81);

CREATE TABLE runs (
  state TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('done', 53, 13),
  ('failed', 61, 70),
  ('new', 43, 24),
  ('new', 38, 49),
  ('new', 79, 32),
  ('done', 48, 13),
  ('new', 5, 43),
  ('new', 3, 24),
  ('failed', 23, 10),
  ('new', 38, 51),
  ('failed', 72, 94),
  ('done', 73, 72),
  ('done', 29, 73),
  ('new', 72, 33),
  ('failed', 68, 18),
  ('failed', 12, 66),
  ('new', 87, 15);

COMMIT;
