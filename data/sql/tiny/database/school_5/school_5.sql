BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  age INTEGER NOT NULL,
  score INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('kim', 'green', 19, 40),
  ('leo', 'red', 11, 52),
  ('mia', 'red', 13, 99),
  ('noah', 'red', 16, 38),
  ('olga', 'red', 13, 69),
  ('paul', 'red', 13, 81),
  ('rita', 'blue', 16, 89),
  ('sam', 'green', 15, 69),
  ('tara', 'blue', 11, 97),
  ('uma', 'red', 14, 62);

CREATE TABLE teachers (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  salary INTEGER NOT NULL,
  years INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('adams', 'art', 47, 9),
  ('baker', 'art', 75, 19),
  ('clark', 'music', 45, 9),
  ('davis', 'music', 35, 27),
  ('evans', 'art', 71, 26),
  ('ford', 'math', 76, 33),
  ('grant', 'art', 74, 27),
  ('hill', 'math', 89, 29);

CREATE TABLE courses (
  level TEXT NOT NULL,
  credits INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('medium', 2, 53),
  ('easy', 8, 10),
  ('medium', 4, 31),
  ('easy', 4, 14),
  ('medium', 7, 26),
  ('medium', 7, 31),
  ('hard', 9, 35),
  ('easy', 8, 11),
  ('hard', 6, 19),
  ('hard', 10, 42),
  ('easy', 9, 12),
  ('medium', 9, 8),
  ('easy', 12, 38),
  ('medium', 7, 29),
  ('easy', 3, 55),
  ('hard', 11, 57),
  ('medium', 3, 23);

COMMIT;
