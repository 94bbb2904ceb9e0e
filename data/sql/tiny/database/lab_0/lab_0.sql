BEGIN TRANSACTION;

CREATE TABLE samples (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  weight INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('alpha', 'air', 30, 93),
  ('beta', 'water', 22, 75),
  ('gamma', 'water', 29, 86),
  ('delta', 'water', 8, 76),
  ('theta', 'water', 43, 79),
  ('sigma', 'soil', 43, 66),
  ('omega', 'soil', 15, 60),
  ('kappa', 'air', 14, 78);

CREATE TABLE devices (
  name TEXT NOT NULL,
  room TEXT NOT NULL,
  power INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('laser', 'east', 67, 64),
  ('probe', 'north', 71, 30),
  ('scale', 'north', 70, 1),
  ('pump', 'south', 53, 1),
  ('oven', 'south', 94, 81),
  ('mixer', 'east', 64, 58),
  ('press', 'north', 70, 24),
  ('scope', 'north', 54, 37);

CREATE TABLE runs (
  state TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('failed', 30, 31),
  ('done', 55, 41),
  ('new', 60, 76),
  ('failed', 24, 81),
  ('done', 89, 26),
  ('failed', 41, 64),
  ('failed', 27, 78),
  ('new', 13, 81),
  ('new', 45, 84),
  ('failed', 90, 76),
  ('new', 70, 90),
  ('done', 36, 67),
  ('done', 60, 53),
  ('new', 70, 50),
  ('done', 70, 53),
  ('new', 39, 52);

COMMIT;
