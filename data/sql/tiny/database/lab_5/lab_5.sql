BEGIN TRANSACTION;

CREATE TABLE samples (
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  weight INTEGER NOT NULL,
  purity INTEGER NOT NULL
);
INSERT INTO samples VALUES
  ('alpha', 'water', 25, 53),
  ('beta', 'water', 45, 81),
  ('gamma', 'air', 69, 97),
  ('delta', 'soil', 16, 92),
  ('theta', 'air', 17, 61),
  ('sigma', 'water', 49, 56),
  ('omega', 'soil', 6, 87),
  ('kappa', 'soil', 61, 52);

CREATE TABLE devices (
  name TEXT NOT NULL,
  room TEXT NOT NULL,
  power INTEGER NOT NULL,
  hours INTEGER NOT NULL
);
INSERT INTO devices VALUES
  ('laser', 'south', 13, 1),
  ('probe', 'south', 62, 78),
  ('scale', 'east', 31, 48),
  ('pump', 'north', 12, 83),
  ('oven', 'north', 72, 47),
  ('mixer', 'north', 64, 27),
  ('press', 'south', 61, 34),
  ('scope', 'east', 60, 4);

CREATE TABLE runs (
  state TEXT NOT NULL,
  minutes INTEGER NOT NULL,
  cost INTEGER NOT NULL
);
INSERT INTO runs VALUES
  ('failed', 81, 28),
  ('done', 13, 79),
  ('done', 21, 58),
  ('done', 26, 69),
  ('failed', 55, 94),
  ('new', 80, 91),
  ('new', 74, 85),
  ('failed', 83, 28),
  ('new', 44, 40),
  ('new', 47, 13),
  ('done', 46, 85),
  ('new', 40, 85);

COMMIT;
