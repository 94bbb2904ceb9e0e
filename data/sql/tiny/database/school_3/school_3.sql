BEGIN TRANSACTION;

CREATE TABLE students (
  name TEXT NOT NULL,
  house TEXT NOT NULL,
  age INTEGER NOT NULL,
  score INTEGER NOT NULL
);
INSERT INTO students VALUES
  ('kim', 'blue', 10, 32),
  ('leo', 'blue', 10, 40),
  ('mia', 'red', 17, 55),
  ('noah', 'red', 12, 50),
  ('olga', 'red', 10, 99),
  ('paul', 'blue', 13, 61),
  ('rita', 'red', 19, 82),
  ('sam', 'blue', 15, 90),
  ('tara', 'green', 12, 68),
  ('uma', 'green', 10, 77);

CREATE TABLE teachers (
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  salary INTEGER NOT NULL,
  years INTEGER NOT NULL
);
INSERT INTO teachers VALUES
  ('adams', 'art', 57, 12),
  ('baker', 'math', 42, 30),
  ('clark', 'math', 33, 20),
  ('davis', 'math', 44, 30),
  ('evans', 'art', 82, 7),
  ('ford', 'art', 79, 7),
  ('grant', 'music', 88, 39),
  ('hill', 'music', 38, 9);

CREATE TABLE courses (
  level TEXT NOT NULL,
  credits INTEGER NOT NULL,
  seats INTEGER NOT NULL
);
INSERT INTO courses VALUES
  ('medium', 9, 23),
  ('hard', 3, 16),
  ('easy', 9, 36),
  ('easy', 6, 10),
  ('easy', 2, 31),
  ('hard', 6, 60),
  ('medium', 6, 57),
  ('medium', 1, 37),
  ('hard', 8, 58),
  ('hard', 4, 39),
  ('medium', 6, 8),
  ('easy', 10, 20),
  ('easy', 4, 42),
  ('hard', 1, 11),
  ('hard', 8, 9);

COMMIT;
