-- A small ferry company between the islands and the mainland, one summer of sailings.

BEGIN TRANSACTION;

-- The quays where ferries call.
--   port_id: Number of the port.
--   name: Name of the port.
--   island: Island on which it lies, or Mainland.
--   population: People who live there.
--   has_fuel: 1 if ferries can refuel there, else 0.
CREATE TABLE ports (
  port_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  island TEXT NOT NULL,
  population INTEGER NOT NULL,
  has_fuel INTEGER NOT NULL
);
INSERT INTO ports VALUES
  (1, 'Hallvik', 'Mainland', 18400, 1),
  (2, 'Sandøy', 'Sandøy', 640, 0),
  (3, 'Nordhavn', 'Storøy', 2150, 1),
  (4, 'Sørbukt', 'Storøy', 890, 0),
  (5, 'Kobbervik', 'Kobberøy', 410, 0),
  (6, 'St. Anne''s Quay', 'Anneholm', 1275, 1),
  (7, 'Lyngnes', 'Mainland', 5230, 1),
  (8, 'Tareskjær', 'Tareskjær', 58, 0),
  (9, 'Fyrholm', 'Fyrholm', 133, 0),
  (10, 'Vestre Brygge', 'Anneholm', 320, 0),
  (11, 'Måkesund', 'Mainland', 3045, 1),
  (12, 'Eggøy', 'Eggøy', 77, 0);

-- The company's ships, those sold or scrapped included.
--   vessel_id: Number of the vessel.
--   name: Name of the vessel.
--   built_year: Year in which it was built.
--   passenger_capacity: Most passengers on board.
--   car_capacity: Most cars on board.
--   top_speed: Top speed in knots.
--   retired_on (ISO date): Day on which it left service; NULL while it sails.
CREATE TABLE vessels (
  vessel_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  built_year INTEGER NOT NULL,
  passenger_capacity INTEGER NOT NULL,
  car_capacity INTEGER NOT NULL,
  top_speed REAL NOT NULL,
  retired_on TEXT
);
INSERT INTO vessels VALUES
  (1, 'Havørn', 1998, 220, 48, 17.5, NULL),
  (2, 'Dronning Liv', 2011, 340, 76, 19.0, NULL),
  (3, 'Terna', 1987, 120, 18, 14.2, '2023-10-31'),
  (4, 'Skarven', 2004, 180, 34, 16.0, NULL),
  (5, 'Alke', 2019, 150, 28, 21.5, NULL),
  (6, 'Lundefugl', 1979, 95, 12, 12.8, '2021-04-15'),
  (7, 'Princess O''Malley', 2015, 410, 92, 20.3, NULL),
  (8, 'Svartbak', 2022, 260, 60, 23.0, NULL),
  (9, 'Rødnebb', 1993, 140, 22, 15.1, NULL);

-- Connections in one direction.
--   route_id: Number of the route.
--   from_port_id: Port of departure.
--   to_port_id: Port of arrival.
--   distance_nm: Distance in nautical miles.
--   duration_min: Scheduled time in minutes.
CREATE TABLE routes (
  route_id INTEGER PRIMARY KEY NOT NULL,
  from_port_id INTEGER NOT NULL REFERENCES ports(port_id),
  to_port_id INTEGER NOT NULL REFERENCES ports(port_id),
  distance_nm REAL NOT NULL,
  duration_min INTEGER NOT NULL
);
INSERT INTO routes VALUES
  (1, 1, 3, 5.7, 30),
  (2, 3, 1, 5.7, 33),
  (3, 1, 6, 12.9, 58),
  (4, 6, 1, 12.9, 63),
  (5, 1, 2, 16.8, 77),
  (6, 7, 5, 23.4, 106),
  (7, 5, 7, 23.4, 102),
  (8, 7, 3, 14.6, 70),
  (9, 11, 9, 13.4, 59),
  (10, 9, 11, 13.4, 60),
  (11, 11, 12, 5.3, 31),
  (12, 6, 10, 18.9, 88),
  (13, 2, 8, 23.8, 106),
  (14, 3, 4, 20.2, 91),
  (15, 4, 3, 20.2, 88),
  (16, 10, 6, 18.9, 85);

-- Single departures of summer 2024.
--   sailing_id: Number of the sailing.
--   sail_date (ISO date): Day of departure.
--   departure (time of day): Scheduled time of departure.
--   route_id: Route sailed.
--   vessel_id: Vessel on duty.
--   status: on time, delayed or cancelled.
--   passengers: Passengers carried; 0 when cancelled.
--   cars: Cars carried; 0 when cancelled.
--   delay_min: Minutes late; NULL unless delayed.
CREATE TABLE sailings (
  sailing_id INTEGER PRIMARY KEY NOT NULL,
  sail_date TEXT NOT NULL,
  departure TEXT NOT NULL,
  route_id INTEGER NOT NULL REFERENCES routes(route_id),
  vessel_id INTEGER NOT NULL REFERENCES vessels(vessel_id),
  status TEXT NOT NULL,
  passengers INTEGER NOT NULL,
  cars INTEGER NOT NULL,
  delay_min INTEGER
);
INSERT INTO sailings VALUES
  (1, '2024-06-01', '13:00', 10, 7, 'on time', 245, 33, NULL),
  (2, '2024-06-02', '20:15', 10, 4, 'cancelled', 0, 0, NULL),
  (3, '2024-06-03', '07:10', 10, 4, 'on time', 47, 4, NULL),
  (4, '2024-06-03', '20:10', 1, 2, 'delayed', 62, 17, 47),
  (5, '2024-06-04', '07:40', 1, 8, 'on time', 229, 30, NULL),
  (6, '2024-06-05', '07:45', 15, 8, 'on time', 90, 38, NULL),
  (7, '2024-06-05', '16:30', 6, 5, 'delayed', 81, 19, 72),
  (8, '2024-06-05', '16:30', 6, 2, 'on time', 199, 27, NULL),
  (9, '2024-06-05', '17:15', 4, 1, 'on time', 74, 28, NULL),
  (10, '2024-06-07', '17:00', 12, 2, 'on time', 191, 66, NULL),
  (11, '2024-06-09', '08:30', 11, 1, 'on time', 192, 28, NULL),
  (12, '2024-06-10', '18:10', 9, 7, 'on time', 294, 29, NULL),
  (13, '2024-06-11', '18:40', 8, 7, 'on time', 370, 62, NULL),
  (14, '2024-06-12', '09:30', 13, 9, 'delayed', 106, 13, 31),
  (15, '2024-06-13', '07:00', 10, 8, 'delayed', 140, 57, 51),
  (16, '2024-06-13', '07:15', 13, 1, 'on time', 116, 8, NULL),
  (17, '2024-06-13', '12:10', 8, 5, 'on time', 58, 10, NULL),
  (18, '2024-06-14', '10:15', 3, 1, 'delayed', 147, 43, 74),
  (19, '2024-06-14', '16:15', 12, 9, 'delayed', 61, 6, 38),
  (20, '2024-06-15', '18:45', 12, 8, 'on time', 181, 34, NULL),
  (21, '2024-06-16', '16:45', 4, 2, 'on time', 226, 14, NULL),
  (22, '2024-06-17', '09:45', 14, 9, 'delayed', 98, 9, 57),
  (23, '2024-06-18', '07:00', 11, 1, 'on time', 80, 42, NULL),
  (24, '2024-06-18', '10:00', 14, 5, 'on time', 108, 16, NULL),
  (25, '2024-06-19', '12:45', 15, 8, 'on time', 218, 27, NULL),
  (26, '2024-06-19', '15:30', 4, 5, 'on time', 136, 3, NULL),
  (27, '2024-06-19', '17:40', 12, 1, 'on time', 29, 10, NULL),
  (28, '2024-06-19', '20:15', 8, 7, 'on time', 185, 49, NULL),
  (29, '2024-06-19', '20:30', 6, 9, 'delayed', 40, 2, 29),
  (30, '2024-06-20', '17:10', 15, 7, 'on time', 358, 39, NULL),
  (31, '2024-06-20', '20:40', 7, 8, 'cancelled', 0, 0, NULL),
  (32, '2024-06-21', '20:10', 13, 4, 'on time', 118, 26, NULL),
  (33, '2024-06-22', '06:45', 12, 5, 'on time', 140, 16, NULL),
  (34, '2024-06-23', '16:40', 3, 2, 'delayed', 187, 54, 74),
  (35, '2024-06-23', '17:45', 15, 7, 'on time', 410, 20, NULL),
  (36, '2024-06-24', '06:30', 8, 5, 'on time', 109, 3, NULL),
  (37, '2024-06-24', '16:10', 2, 4, 'on time', 48, 31, NULL),
  (38, '2024-06-25', '07:45', 2, 7, 'delayed', 163, 38, 58),
  (39, '2024-06-26', '08:15', 6, 1, 'on time', 184, 20, NULL),
  (40, '2024-06-26', '16:15', 2, 9, 'on time', 103, 2, NULL),
  (41, '2024-06-26', '18:45', 10, 2, 'on time', 214, 32, NULL),
  (42, '2024-06-27', '10:00', 12, 9, 'on time', 47, 10, NULL),
  (43, '2024-06-27', '12:10', 15, 2, 'cancelled', 0, 0, NULL),
  (44, '2024-06-27', '15:40', 3, 2, 'delayed', 170, 76, 69),
  (45, '2024-06-27', '18:15', 2, 9, 'on time', 103, 11, NULL),
  (46, '2024-06-30', '15:45', 10, 4, 'on time', 85, 29, NULL),
  (47, '2024-06-30', '16:30', 14, 9, 'delayed', 97, 8, 30),
  (48, '2024-07-01', '06:00', 14, 9, 'on time', 52, 16, NULL),
  (49, '2024-07-02', '08:30', 2, 7, 'on time', 253, 74, NULL),
  (50, '2024-07-02', '13:15', 10, 5, 'on time', 74, 13, NULL),
  (51, '2024-07-02', '13:30', 4, 2, 'on time', 61, 14, NULL),
  (52, '2024-07-02', '16:40', 11, 8, 'on time', 234, 19, NULL),
  (53, '2024-07-03', '09:00', 14, 8, 'delayed', 92, 15, 50),
  (54, '2024-07-07', '15:30', 11, 2, 'on time', 230, 17, NULL),
  (55, '2024-07-07', '15:30', 5, 5, 'on time', 60, 7, NULL),
  (56, '2024-07-07', '17:15', 2, 7, 'on time', 84, 31, NULL),
  (57, '2024-07-08', '09:15', 13, 2, 'on time', 245, 31, NULL),
  (58, '2024-07-08', '20:00', 15, 2, 'on time', 109, 61, NULL),
  (59, '2024-07-09', '06:30', 9, 1, 'on time', 144, 35, NULL),
  (60, '2024-07-09', '07:30', 16, 2, 'on time', 131, 26, NULL),
  (61, '2024-07-09', '12:40', 15, 8, 'delayed', 176, 38, 42),
  (62, '2024-07-10', '08:45', 9, 7, 'on time', 377, 37, NULL),
  (63, '2024-07-10', '12:10', 13, 5, 'on time', 28, 8, NULL),
  (64, '2024-07-10', '15:00', 4, 4, 'on time', 134, 27, NULL),
  (65, '2024-07-11', '07:15', 16, 5, 'delayed', 128, 28, 12),
  (66, '2024-07-11', '13:00', 11, 5, 'on time', 52, 8, NULL),
  (67, '2024-07-11', '20:40', 3, 8, 'on time', 168, 43, NULL),
  (68, '2024-07-12', '08:15', 9, 2, 'on time', 56, 62, NULL),
  (69, '2024-07-13', '10:15', 12, 4, 'on time', 88, 6, NULL),
  (70, '2024-07-13', '10:30', 3, 2, 'on time', 132, 24, NULL),
  (71, '2024-07-14', '10:15', 14, 8, 'on time', 174, 11, NULL),
  (72, '2024-07-14', '20:10', 15, 8, 'on time', 158, 51, NULL),
  (73, '2024-07-16', '12:00', 9, 7, 'on time', 67, 34, NULL),
  (74, '2024-07-16', '18:40', 6, 8, 'on time', 53, 29, NULL),
  (75, '2024-07-17', '13:15', 5, 2, 'on time', 73, 59, NULL),
  (76, '2024-07-17', '18:40', 6, 1, 'delayed', 139, 9, 26),
  (77, '2024-07-17', '20:15', 16, 9, 'on time', 95, 9, NULL),
  (78, '2024-07-18', '09:10', 5, 5, 'on time', 64, 10, NULL),
  (79, '2024-07-18', '10:00', 15, 1, 'on time', 129, 48, NULL),
  (80, '2024-07-20', '06:15', 16, 5, 'delayed', 94, 18, 11),
  (81, '2024-07-20', '15:40', 8, 4, 'delayed', 43, 16, 8),
  (82, '2024-07-21', '08:15', 11, 5, 'on time', 129, 19, NULL),
  (83, '2024-07-21', '12:15', 14, 9, 'on time', 25, 9, NULL),
  (84, '2024-07-22', '09:45', 1, 8, 'on time', 105, 51, NULL),
  (85, '2024-07-22', '17:00', 11, 2, 'on time', 248, 57, NULL),
  (86, '2024-07-23', '18:30', 12, 8, 'on time', 95, 33, NULL),
  (87, '2024-07-24', '07:10', 14, 2, 'on time', 324, 34, NULL),
  (88, '2024-07-24', '09:45', 1, 4, 'on time', 166, 4, NULL),
  (89, '2024-07-25', '06:45', 9, 8, 'delayed', 99, 16, 14),
  (90, '2024-07-25', '10:30', 8, 4, 'on time', 156, 20, NULL),
  (91, '2024-07-25', '13:15', 3, 1, 'on time', 105, 12, NULL),
  (92, '2024-07-25', '15:00', 3, 7, 'delayed', 66, 83, 19),
  (93, '2024-07-26', '16:10', 2, 7, 'delayed', 409, 30, 6),
  (94, '2024-07-27', '17:15', 1, 4, 'on time', 66, 16, NULL),
  (95, '2024-07-28', '17:10', 9, 1, 'on time', 183, 21, NULL),
  (96, '2024-07-30', '16:00', 12, 2, 'on time', 274, 41, NULL),
  (97, '2024-07-31', '12:40', 7, 8, 'delayed', 48, 26, 46),
  (98, '2024-07-31', '13:45', 15, 8, 'delayed', 38, 21, 53),
  (99, '2024-08-02', '06:10', 11, 1, 'on time', 42, 32, NULL),
  (100, '2024-08-02', '10:00', 14, 7, 'on time', 185, 30, NULL),
  (101, '2024-08-02', '10:10', 9, 7, 'on time', 115, 28, NULL),
  (102, '2024-08-04', '06:15', 11, 7, 'on time', 185, 36, NULL),
  (103, '2024-08-05', '06:00', 3, 4, 'on time', 98, 30, NULL),
  (104, '2024-08-05', '12:45', 2, 7, 'on time', 122, 68, NULL),
  (105, '2024-08-06', '10:30', 3, 5, 'on time', 106, 15, NULL),
  (106, '2024-08-07', '06:40', 11, 7, 'on time', 191, 16, NULL),
  (107, '2024-08-07', '12:45', 12, 1, 'delayed', 182, 25, 69),
  (108, '2024-08-07', '17:15', 15, 5, 'on time', 31, 4, NULL),
  (109, '2024-08-08', '16:40', 6, 7, 'delayed', 51, 34, 34),
  (110, '2024-08-10', '10:45', 11, 7, 'cancelled', 0, 0, NULL),
  (111, '2024-08-10', '15:00', 8, 4, 'delayed', 124, 9, 37),
  (112, '2024-08-11', '15:45', 4, 2, 'on time', 83, 54, NULL),
  (113, '2024-08-11', '16:15', 5, 9, 'on time', 62, 17, NULL),
  (114, '2024-08-12', '08:45', 10, 8, 'on time', 99, 25, NULL),
  (115, '2024-08-13', '18:40', 15, 1, 'on time', 78, 39, NULL),
  (116, '2024-08-14', '20:30', 1, 7, 'delayed', 132, 43, 20),
  (117, '2024-08-15', '06:10', 15, 2, 'on time', 118, 71, NULL),
  (118, '2024-08-15', '08:45', 7, 7, 'on time', 125, 54, NULL),
  (119, '2024-08-15', '16:45', 4, 4, 'on time', 150, 32, NULL),
  (120, '2024-08-15', '20:45', 5, 7, 'on time', 268, 48, NULL),
  (121, '2024-08-17', '07:40', 14, 4, 'on time', 90, 26, NULL),
  (122, '2024-08-18', '09:45', 1, 4, 'on time', 136, 11, NULL),
  (123, '2024-08-19', '06:15', 6, 8, 'cancelled', 0, 0, NULL),
  (124, '2024-08-20', '08:30', 3, 7, 'on time', 319, 27, NULL),
  (125, '2024-08-20', '10:30', 10, 2, 'on time', 333, 62, NULL),
  (126, '2024-08-21', '12:30', 9, 4, 'on time', 63, 21, NULL),
  (127, '2024-08-21', '18:30', 2, 1, 'on time', 146, 26, NULL),
  (128, '2024-08-22', '13:45', 13, 5, 'cancelled', 0, 0, NULL),
  (129, '2024-08-23', '16:45', 14, 8, 'on time', 242, 56, NULL),
  (130, '2024-08-25', '09:15', 12, 8, 'on time', 215, 27, NULL),
  (131, '2024-08-25', '13:45', 10, 2, 'on time', 168, 63, NULL),
  (132, '2024-08-25', '16:40', 2, 1, 'on time', 77, 22, NULL),
  (133, '2024-08-27', '07:00', 1, 4, 'on time', 38, 14, NULL),
  (134, '2024-08-27', '13:15', 16, 1, 'on time', 172, 34, NULL),
  (135, '2024-08-27', '20:30', 13, 5, 'on time', 138, 28, NULL),
  (136, '2024-08-28', '16:30', 15, 9, 'on time', 56, 21, NULL),
  (137, '2024-08-30', '09:30', 3, 7, 'on time', 323, 78, NULL),
  (138, '2024-08-30', '15:30', 14, 5, 'on time', 36, 20, NULL),
  (139, '2024-08-30', '17:45', 2, 4, 'on time', 132, 13, NULL),
  (140, '2024-08-31', '08:40', 5, 7, 'on time', 161, 85, NULL);

-- People who work on board.
--   crew_id: Number of the person.
--   name: Full name.
--   post: captain, engineer, deckhand or steward.
--   hired_on (ISO date): First day of work.
--   home_port_id: Port where the person lives; NULL if elsewhere.
CREATE TABLE crew (
  crew_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  post TEXT NOT NULL,
  hired_on TEXT NOT NULL,
  home_port_id INTEGER REFERENCES ports(port_id)
);
INSERT INTO crew VALUES
  (1, 'Ulla Olsen', 'captain', '2014-04-28', 11),
  (2, 'Anders Vidal', 'captain', '2000-10-15', 1),
  (3, 'Karim Zhang', 'engineer', '2012-10-31', 3),
  (4, 'Xavier Varga', 'engineer', '2024-02-13', 7),
  (5, 'Ines Novák', 'deckhand', '2001-10-11', 7),
  (6, 'Milan Dubois', 'deckhand', '2004-04-12', 11),
  (7, 'Elena Rahman', 'deckhand', '2013-04-16', 11),
  (8, 'Björn Svoboda', 'steward', '1997-10-23', 11),
  (9, 'Samira Müller', 'captain', '2010-08-28', 1),
  (10, 'Maren Almeida', 'captain', '2020-06-26', 1),
  (11, 'Rosa Castellano', 'engineer', '2016-02-12', 3),
  (12, 'Yusuf Lopes', 'engineer', '2003-11-10', 6),
  (13, 'Nadia Park', 'deckhand', '2015-05-05', 7),
  (14, 'Hana Nowak', 'deckhand', '2012-03-03', 1),
  (15, 'Mei Berg', 'deckhand', '2000-01-24', NULL),
  (16, 'Dimitra Baptiste', 'steward', '2015-06-30', 1),
  (17, 'Stefan Çelik', 'captain', '2022-06-16', 3),
  (18, 'Anita García', 'captain', '2003-09-27', 1),
  (19, 'Amélie Jovanović', 'engineer', '2021-11-07', 11),
  (20, 'Cem Weber', 'engineer', '2016-09-17', 1),
  (21, 'Jonas Quist', 'deckhand', '2019-09-19', 11),
  (22, 'Petra Tan', 'deckhand', '2018-10-07', 1);

-- Who is trained for, and assigned to, which vessel.
--   crew_id: The person.
--   vessel_id: The vessel.
--   since (ISO date): First day of the assignment.
CREATE TABLE assignments (
  crew_id INTEGER NOT NULL REFERENCES crew(crew_id),
  vessel_id INTEGER NOT NULL REFERENCES vessels(vessel_id),
  since TEXT NOT NULL,
  PRIMARY KEY (crew_id, vessel_id)
);
INSERT INTO assignments VALUES
  (1, 5, '2023-03-04'),
  (1, 9, '2020-09-25'),
  (2, 1, '2023-09-10'),
  (3, 4, '2022-06-17'),
  (3, 7, '2023-03-31'),
  (3, 8, '2021-06-30'),
  (6, 1, '2021-09-30'),
  (6, 4, '2023-10-21'),
  (7, 4, '2022-08-09'),
  (7, 8, '2019-02-09'),
  (7, 9, '2018-01-20'),
  (9, 4, '2023-01-24'),
  (10, 1, '2024-01-13'),
  (10, 8, '2024-03-03'),
  (11, 1, '2022-03-03'),
  (11, 4, '2019-07-30'),
  (11, 7, '2020-02-11'),
  (12, 4, '2019-12-03'),
  (12, 5, '2023-05-02'),
  (13, 2, '2018-03-27'),
  (13, 5, '2020-02-10'),
  (13, 8, '2018-01-30'),
  (14, 7, '2021-08-31'),
  (14, 8, '2018-05-28'),
  (15, 7, '2024-03-06'),
  (15, 8, '2018-09-21'),
  (16, 2, '2018-08-03'),
  (17, 7, '2022-10-08'),
  (18, 2, '2019-11-29'),
  (18, 4, '2023-08-09'),
  (19, 4, '2021-11-21'),
  (19, 7, '2021-11-13'),
  (20, 5, '2021-10-11'),
  (21, 8, '2020-09-25');

COMMIT;
