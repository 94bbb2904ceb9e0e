-- Huts, trails and overnight stays of an alpine club.

BEGIN TRANSACTION;

-- Mountain groups.
--   region_id: Number of the region.
--   name: Name of the mountain group.
--   country: Country it lies in, mostly.
--   highest_m: Height of its highest summit in metres.
CREATE TABLE regions (
  region_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  country TEXT NOT NULL,
  highest_m INTEGER NOT NULL
);
INSERT INTO regions VALUES
  (1, 'Silvretta', 'Austria', 3410),
  (2, 'Karwendel', 'Austria', 2749),
  (3, 'Bernina', 'Switzerland', 4049),
  (4, 'Dolomiti di Brenta', 'Italy', 3173),
  (5, 'Julijske Alpe', 'Slovenia', 2864),
  (6, 'Vanoise', 'France', 3855),
  (7, 'Glarner Alpen', 'Switzerland', 3614);

-- Staffed and unstaffed huts.
--   hut_id: Number of the hut.
--   name: Name of the hut.
--   region_id: Mountain group it lies in.
--   altitude_m: Altitude in metres.
--   beds: Beds for guests.
--   opened_year: Year it opened.
--   winter_room: 1 if a room stays open in winter, else 0.
--   warden: Name of the warden; NULL if unstaffed.
CREATE TABLE huts (
  hut_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  region_id INTEGER NOT NULL REFERENCES regions(region_id),
  altitude_m INTEGER NOT NULL,
  beds INTEGER NOT NULL,
  opened_year INTEGER NOT NULL,
  winter_room INTEGER NOT NULL,
  warden TEXT
);
INSERT INTO huts VALUES
  (1, 'Bärenhütte', 1, 2042, 20, 1993, 1, 'Rosa Ito'),
  (2, 'Rifugio dell''Aquila', 4, 1992, 18, 1885, 1, 'Grace Marchetti'),
  (3, 'Falkenrasthaus', 2, 1672, 30, 1926, 0, 'Zoë Fernández'),
  (4, 'Refuge du Lac Noir', 6, 2557, 18, 1950, 0, 'Paolo Kowalski'),
  (5, 'Steinbockhütte', 1, 2494, 36, 1941, 1, 'Rafael Müller'),
  (6, 'Triglavska koča', 5, 2378, 70, 1885, 1, 'Fatima Bianchi'),
  (7, 'Cabane des Edelweiss', 3, 3009, 90, 1909, 1, NULL),
  (8, 'Gletscherblick', 3, 1679, 104, 1931, 1, 'Tariq Zeller'),
  (9, 'Rifugio Tre Croci', 4, 2565, 108, 1981, 0, 'Ivan Hansen'),
  (10, 'Murmelhütte', 2, 2530, 82, 1937, 1, 'Katarína Virtanen'),
  (11, 'Nebelhornhütte', 2, 1777, 54, 1927, 1, NULL),
  (12, 'Koča pod Skalo', 5, 1968, 86, 1967, 0, 'Maja García'),
  (13, 'Chamanna Alva', 3, 1535, 48, 1895, 1, 'Laila Rahman'),
  (14, 'Refuge de la Fée', 6, 1545, 108, 1974, 0, 'Björn Ståhl'),
  (15, 'Adlerhorst', 1, 2778, 54, 1926, 0, 'Emeka Haddad'),
  (16, 'Wolkensteinhaus', 7, 2277, 40, 1955, 1, 'Vera Bakker'),
  (17, 'Capanna San Luca', 4, 1470, 78, 1891, 1, 'Jana Reyes'),
  (18, 'Hirschbachhütte', 7, 1756, 106, 1990, 0, 'Oscar Moreau');

-- Marked trails.
--   trail_id: Number of the trail.
--   name: Name of the trail.
--   region_id: Mountain group it lies in.
--   length_km: Length in kilometres.
--   ascent_m: Metres of ascent in all.
--   difficulty: easy, moderate, hard or expert.
--   dogs_allowed: 1 if dogs may come along, else 0.
CREATE TABLE trails (
  trail_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  region_id INTEGER NOT NULL REFERENCES regions(region_id),
  length_km REAL NOT NULL,
  ascent_m INTEGER NOT NULL,
  difficulty TEXT NOT NULL,
  dogs_allowed INTEGER NOT NULL
);
INSERT INTO trails VALUES
  (1, 'Sentiero delle Bocchette', 4, 37.4, 580, 'moderate', 1),
  (2, 'Höhenweg Nord', 1, 19.2, 930, 'easy', 0),
  (3, 'Zirbenpfad', 2, 34.4, 780, 'moderate', 0),
  (4, 'Tour des Glaciers', 6, 6.1, 1920, 'expert', 1),
  (5, 'Via Alva', 3, 28.1, 2570, 'hard', 0),
  (6, 'Gamssteig', 2, 32.0, 2670, 'moderate', 1),
  (7, 'Soška pot', 5, 31.5, 2540, 'moderate', 0),
  (8, 'Drei-Scharten-Runde', 1, 25.3, 2120, 'moderate', 1),
  (9, 'Panoramaweg', 7, 16.7, 1570, 'easy', 1),
  (10, 'Chemin des Lacs', 6, 8.2, 1590, 'moderate', 1),
  (11, 'Knappensteig', 1, 22.2, 1200, 'easy', 0),
  (12, 'Jezerska pot', 5, 17.8, 1820, 'expert', 1),
  (13, 'Grat der Stille', 3, 33.1, 580, 'easy', 1),
  (14, 'Alte Saumroute', 7, 25.3, 1300, 'hard', 1);

-- Huts passed by a trail, in order.
--   trail_id: The trail.
--   hut_id: The hut.
--   stop: 1 for the first hut on the trail, 2 for the second, and so on.
CREATE TABLE trail_huts (
  trail_id INTEGER NOT NULL REFERENCES trails(trail_id),
  hut_id INTEGER NOT NULL REFERENCES huts(hut_id),
  stop INTEGER NOT NULL,
  PRIMARY KEY (trail_id, hut_id)
);
INSERT INTO trail_huts VALUES
  (1, 17, 1),
  (2, 15, 1),
  (2, 5, 2),
  (2, 1, 3),
  (3, 10, 1),
  (3, 11, 2),
  (4, 4, 1),
  (4, 14, 2),
  (5, 13, 1),
  (5, 7, 2),
  (5, 8, 3),
  (6, 3, 1),
  (7, 12, 1),
  (8, 5, 1),
  (8, 15, 2),
  (8, 1, 3),
  (9, 16, 1),
  (10, 14, 1),
  (11, 5, 1),
  (12, 6, 1),
  (12, 12, 2),
  (13, 7, 1),
  (13, 8, 2),
  (14, 16, 1);

-- Guests of the huts.
--   hiker_id: Number of the hiker.
--   name: Full name.
--   birth_year: Year of birth.
--   home_town: Town of residence.
--   member_since: Year of joining the club; NULL for those who have not.
CREATE TABLE hikers (
  hiker_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  birth_year INTEGER NOT NULL,
  home_town TEXT NOT NULL,
  member_since INTEGER
);
INSERT INTO hikers VALUES
  (1, 'Ada Nowak', 1984, 'München', 2003),
  (2, 'Fatima Castellano', 2001, 'Zürich', 2013),
  (3, 'Niamh Nakamura', 1967, 'Innsbruck', 2003),
  (4, 'João Ünal', 1980, 'Zürich', 2001),
  (5, 'Paolo Zhang', 1956, 'Lugano', 1985),
  (6, 'Hana Lindqvist', 1993, 'Chambéry', 2021),
  (7, 'Tomas Olsen', 1955, 'Graz', 2015),
  (8, 'Łukasz Ito', 1965, 'Ljubljana', 2005),
  (9, 'Noor Rahman', 1946, 'Trento', NULL),
  (10, 'Finn Quist', 1990, 'Graz', NULL),
  (11, 'Wanda Wójcik', 1993, 'Innsbruck', 2005),
  (12, 'Lena Fernández', 1977, 'Graz', 2018),
  (13, 'Xavier Hansen', 1963, 'München', NULL),
  (14, 'Marek Brandt', 2000, 'Trento', 2012),
  (15, 'Ivan Müller', 1979, 'Trento', 2001),
  (16, 'Oscar Kowalski', 1995, 'Ljubljana', NULL),
  (17, 'Ines D''Angelo', 1978, 'Chambéry', NULL),
  (18, 'Elena Kumar', 1995, 'Zürich', 2010),
  (19, 'Björn Moreau', 1980, 'Graz', NULL),
  (20, 'Theo Jovanović', 1988, 'Zürich', NULL),
  (21, 'Chiara Sato', 1959, 'Graz', 2000),
  (22, 'Cem Maier', 1962, 'Graz', 1995),
  (23, 'Katarína Silva', 1972, 'Trento', 2015),
  (24, 'Anders Lehtonen', 1970, 'Trento', NULL),
  (25, 'Rosa Dubois', 2001, 'Chambéry', 2020),
  (26, 'Stefan García', 1987, 'Zürich', 1999),
  (27, 'Daniel Zeller', 1967, 'Trento', NULL),
  (28, 'Dimitra Novák', 2002, 'Trento', 2014),
  (29, 'Lucía Okafor', 1949, 'Innsbruck', 2009),
  (30, 'Grace Berg', 1955, 'Ljubljana', 2015),
  (31, 'Samira Horvat', 1987, 'Chambéry', 2016),
  (32, 'Jonas Fischer', 1980, 'Zürich', 2008),
  (33, 'Felix Papadopoulos', 1968, 'München', 1980),
  (34, 'Ben Svoboda', 1971, 'Ljubljana', 2010),
  (35, 'Lars Bakker', 2000, 'Lugano', 2012),
  (36, 'Eero Reyes', 2005, 'Chambéry', 2023),
  (37, 'Henrik Torres', 1948, 'Ljubljana', NULL),
  (38, 'Elif Tan', 1957, 'Lugano', NULL),
  (39, 'Tereza Cohen', 1954, 'Zürich', 1995),
  (40, 'Kaisa Petrov', 2005, 'Chambéry', 2017);

-- Overnight stays.
--   stay_id: Number of the stay.
--   arrived_on (ISO date): Day of arrival.
--   hiker_id: The guest.
--   hut_id: The hut.
--   nights: Nights stayed.
--   paid: Paid in all, in euros.
--   rating: 1 to 5 stars; NULL if not rated.
CREATE TABLE stays (
  stay_id INTEGER PRIMARY KEY NOT NULL,
  arrived_on TEXT NOT NULL,
  hiker_id INTEGER NOT NULL REFERENCES hikers(hiker_id),
  hut_id INTEGER NOT NULL REFERENCES huts(hut_id),
  nights INTEGER NOT NULL,
  paid REAL NOT NULL,
  rating INTEGER
);
INSERT INTO stays VALUES
  (1, '2022-06-10', 21, 6, 1, 18.0, NULL),
  (2, '2022-06-13', 1, 13, 1, 22.5, 4),
  (3, '2022-06-16', 4, 13, 1, 22.5, 5),
  (4, '2022-06-17', 4, 1, 3, 67.5, NULL),
  (5, '2022-06-18', 9, 16, 1, 32.5, 5),
  (6, '2022-06-20', 33, 9, 2, 45.0, 5),
  (7, '2022-06-21', 7, 3, 2, 36.0, 5),
  (8, '2022-07-02', 21, 11, 1, 18.0, NULL),
  (9, '2022-07-02', 24, 14, 1, 28.0, NULL),
  (10, '2022-07-05', 32, 3, 1, 18.0, 5),
  (11, '2022-07-06', 7, 7, 2, 36.0, 3),
  (12, '2022-07-11', 31, 15, 1, 22.5, 2),
  (13, '2022-07-12', 20, 6, 1, 28.0, 2),
  (14, '2022-07-12', 31, 9, 1, 18.0, NULL),
  (15, '2022-07-12', 32, 14, 1, 22.5, 4),
  (16, '2022-07-19', 23, 1, 1, 14.0, 5),
  (17, '2022-07-20', 26, 8, 1, 18.0, 5),
  (18, '2022-07-26', 30, 14, 1, 22.5, 4),
  (19, '2022-07-28', 14, 4, 1, 18.0, 3),
  (20, '2022-08-01', 23, 9, 3, 42.0, 4),
  (21, '2022-08-05', 7, 13, 2, 45.0, 4),
  (22, '2022-08-08', 28, 4, 2, 28.0, 3),
  (23, '2022-08-12', 30, 9, 2, 28.0, 4),
  (24, '2022-08-13', 2, 12, 1, 14.0, NULL),
  (25, '2022-08-16', 29, 1, 1, 22.5, 3),
  (26, '2022-08-19', 30, 4, 1, 22.5, 4),
  (27, '2022-08-22', 20, 6, 3, 108.0, 2),
  (28, '2022-08-24', 4, 15, 2, 45.0, 5),
  (29, '2022-08-27', 2, 11, 3, 67.5, NULL),
  (30, '2022-08-27', 35, 1, 1, 14.0, 4),
  (31, '2022-08-28', 35, 15, 2, 45.0, 4),
  (32, '2022-08-29', 16, 4, 2, 72.0, 3),
  (33, '2022-08-31', 35, 6, 1, 22.5, NULL),
  (34, '2022-09-12', 33, 1, 3, 42.0, NULL),
  (35, '2022-09-14', 23, 6, 2, 45.0, 5),
  (36, '2022-09-17', 35, 14, 1, 14.0, 3),
  (37, '2022-09-17', 37, 12, 2, 56.0, 5),
  (38, '2022-09-22', 4, 16, 2, 36.0, 3),
  (39, '2022-09-28', 20, 1, 2, 56.0, NULL),
  (40, '2022-09-29', 2, 6, 3, 54.0, NULL),
  (41, '2023-06-18', 8, 13, 2, 28.0, NULL),
  (42, '2023-06-19', 18, 12, 3, 67.5, 4),
  (43, '2023-06-20', 23, 16, 2, 45.0, 5),
  (44, '2023-06-26', 4, 6, 1, 14.0, 4),
  (45, '2023-06-28', 2, 5, 1, 18.0, 5),
  (46, '2023-06-30', 2, 3, 3, 42.0, 5),
  (47, '2023-07-01', 24, 5, 1, 36.0, 4),
  (48, '2023-07-02', 19, 10, 3, 108.0, 4),
  (49, '2023-07-16', 15, 12, 1, 22.5, 5),
  (50, '2023-07-16', 27, 2, 2, 65.0, 5),
  (51, '2023-07-17', 23, 7, 1, 18.0, 4),
  (52, '2023-07-18', 13, 15, 2, 72.0, 5),
  (53, '2023-07-21', 23, 3, 2, 28.0, 2),
  (54, '2023-07-22', 3, 1, 2, 28.0, 2),
  (55, '2023-07-24', 18, 8, 2, 45.0, 4),
  (56, '2023-07-25', 2, 11, 2, 36.0, 4),
  (57, '2023-07-26', 30, 6, 2, 28.0, 4),
  (58, '2023-07-31', 3, 1, 1, 14.0, 4),
  (59, '2023-07-31', 6, 15, 1, 14.0, NULL),
  (60, '2023-07-31', 7, 2, 1, 14.0, 2),
  (61, '2023-08-02', 32, 8, 1, 18.0, 5),
  (62, '2023-08-08', 23, 5, 1, 22.5, 5),
  (63, '2023-08-14', 11, 9, 3, 54.0, 5),
  (64, '2023-08-14', 37, 7, 1, 32.5, 5),
  (65, '2023-08-15', 8, 16, 3, 67.5, 3),
  (66, '2023-08-15', 21, 7, 1, 18.0, NULL),
  (67, '2023-08-16', 37, 8, 1, 32.5, 2),
  (68, '2023-08-22', 7, 5, 1, 22.5, 5),
  (69, '2023-08-22', 27, 8, 1, 32.5, NULL),
  (70, '2023-08-22', 27, 12, 1, 32.5, 5),
  (71, '2023-08-23', 9, 4, 3, 97.5, NULL),
  (72, '2023-08-24', 10, 15, 2, 65.0, NULL),
  (73, '2023-08-31', 5, 4, 2, 28.0, 4),
  (74, '2023-09-09', 15, 6, 3, 67.5, NULL),
  (75, '2023-09-10', 4, 13, 2, 45.0, 4),
  (76, '2023-09-11', 35, 2, 1, 22.5, 4),
  (77, '2023-09-18', 2, 11, 1, 22.5, 4),
  (78, '2023-09-18', 22, 12, 2, 45.0, NULL),
  (79, '2023-09-19', 12, 6, 3, 42.0, 2),
  (80, '2023-09-20', 12, 9, 2, 36.0, NULL),
  (81, '2023-09-24', 14, 7, 1, 18.0, 2),
  (82, '2024-06-10', 11, 14, 1, 14.0, NULL),
  (83, '2024-06-20', 1, 9, 1, 14.0, 4),
  (84, '2024-06-21', 37, 16, 1, 36.0, 2),
  (85, '2024-06-22', 8, 3, 2, 36.0, NULL),
  (86, '2024-06-28', 22, 4, 3, 42.0, 4),
  (87, '2024-06-28', 23, 13, 2, 36.0, 4),
  (88, '2024-07-02', 19, 8, 1, 36.0, 5),
  (89, '2024-07-02', 33, 16, 2, 45.0, 4),
  (90, '2024-07-03', 15, 10, 1, 22.5, 4),
  (91, '2024-07-05', 31, 7, 2, 45.0, 2),
  (92, '2024-07-06', 15, 6, 2, 45.0, 5),
  (93, '2024-07-06', 24, 4, 3, 97.5, 2),
  (94, '2024-07-06', 25, 11, 1, 14.0, 5),
  (95, '2024-07-08', 17, 13, 3, 84.0, 4),
  (96, '2024-07-09', 28, 12, 2, 36.0, 2),
  (97, '2024-07-16', 9, 2, 1, 28.0, 4),
  (98, '2024-07-16', 9, 4, 1, 28.0, 3),
  (99, '2024-07-16', 22, 12, 1, 18.0, 3),
  (100, '2024-07-16', 36, 14, 3, 67.5, NULL),
  (101, '2024-07-18', 2, 8, 2, 36.0, 4),
  (102, '2024-07-20', 26, 6, 1, 14.0, 5),
  (103, '2024-07-20', 29, 11, 1, 14.0, NULL),
  (104, '2024-07-24', 5, 4, 2, 45.0, 2),
  (105, '2024-07-28', 1, 10, 1, 18.0, NULL),
  (106, '2024-07-29', 30, 1, 1, 18.0, 5),
  (107, '2024-07-30', 12, 15, 2, 36.0, NULL),
  (108, '2024-08-01', 5, 15, 3, 67.5, 4),
  (109, '2024-08-03', 17, 11, 1, 36.0, 3),
  (110, '2024-08-09', 2, 10, 1, 18.0, 4),
  (111, '2024-08-12', 8, 8, 3, 67.5, 5),
  (112, '2024-08-14', 10, 2, 1, 32.5, 2),
  (113, '2024-08-14', 18, 9, 3, 67.5, 4),
  (114, '2024-08-17', 6, 12, 2, 36.0, NULL),
  (115, '2024-08-18', 22, 5, 2, 36.0, 3),
  (116, '2024-08-20', 6, 7, 1, 22.5, NULL),
  (117, '2024-08-22', 8, 9, 1, 22.5, 4),
  (118, '2024-08-24', 16, 9, 1, 32.5, NULL),
  (119, '2024-08-24', 20, 16, 3, 84.0, 4),
  (120, '2024-08-29', 36, 15, 1, 14.0, 5),
  (121, '2024-09-02', 29, 8, 3, 67.5, 5),
  (122, '2024-09-03', 1, 6, 1, 18.0, 3),
  (123, '2024-09-03', 19, 9, 2, 65.0, 4),
  (124, '2024-09-03', 22, 5, 1, 14.0, 5),
  (125, '2024-09-04', 17, 16, 1, 32.5, 4),
  (126, '2024-09-08', 31, 16, 2, 36.0, 2),
  (127, '2024-09-14', 26, 3, 1, 18.0, 4),
  (128, '2024-09-17', 19, 1, 1, 28.0, 3),
  (129, '2024-09-17', 27, 6, 2, 65.0, NULL),
  (130, '2024-09-18', 34, 5, 3, 67.5, 3),
  (131, '2024-09-23', 4, 14, 2, 45.0, NULL),
  (132, '2024-09-24', 13, 3, 2, 72.0, 3),
  (133, '2024-09-26', 1, 6, 1, 18.0, 4),
  (134, '2024-09-26', 37, 3, 1, 28.0, 3),
  (135, '2024-09-29', 30, 6, 2, 36.0, 5);

COMMIT;
