-- What a city's recycling plant takes in, from where, and what it sorts it with.

BEGIN TRANSACTION;

-- Kinds of material that are accepted.
--   material_id: Number of the material.
--   name: Name of the material.
--   price_per_tonne: Market price in euros per tonne.
--   hazardous: 1 if it needs special handling, else 0.
--   category: glass, paper, plastic, metal, electronic or chemical.
CREATE TABLE materials (
  material_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  price_per_tonne REAL NOT NULL,
  hazardous INTEGER NOT NULL,
  category TEXT NOT NULL
);
INSERT INTO materials VALUES
  (1, 'clear glass', 42.5, 0, 'glass'),
  (2, 'brown glass', 31.0, 0, 'glass'),
  (3, 'cardboard', 96.0, 0, 'paper'),
  (4, 'newsprint', 118.5, 0, 'paper'),
  (5, 'PET bottles', 285.0, 0, 'plastic'),
  (6, 'plastic film', 64.0, 0, 'plastic'),
  (7, 'aluminium cans', 1140.0, 0, 'metal'),
  (8, 'steel scrap', 210.0, 0, 'metal'),
  (9, 'batteries', 530.0, 1, 'electronic'),
  (10, 'circuit boards', 2650.0, 1, 'electronic'),
  (11, 'paint residue', 0.0, 1, 'chemical');

-- Districts of the city.
--   district_id: Number of the district.
--   name: Name of the district.
--   households: Households in it.
--   zone: centre, north, east, south or west.
CREATE TABLE districts (
  district_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  households INTEGER NOT NULL,
  zone TEXT NOT NULL
);
INSERT INTO districts VALUES
  (1, 'Altstadt', 4120, 'centre'),
  (2, 'Bahnhofsviertel', 2875, 'centre'),
  (3, 'Hafen', 1960, 'north'),
  (4, 'Nordhang', 5340, 'north'),
  (5, 'Lindenau', 6215, 'east'),
  (6, 'Ziegelei', 1430, 'east'),
  (7, 'Südwiesen', 7080, 'south'),
  (8, 'King''s Meadow', 3390, 'south'),
  (9, 'Westend', 4765, 'west'),
  (10, 'Am Wehr', 880, 'west');

-- Collection trucks.
--   truck_id: Number of the truck.
--   plate: Number plate.
--   capacity_kg: Largest load in kilograms.
--   bought_on (ISO date): Day of purchase.
--   fuel: diesel, electric or gas.
--   driver: Regular driver; NULL if there is none.
CREATE TABLE trucks (
  truck_id INTEGER PRIMARY KEY NOT NULL,
  plate TEXT NOT NULL,
  capacity_kg INTEGER NOT NULL,
  bought_on TEXT NOT NULL,
  fuel TEXT NOT NULL,
  driver TEXT
);
INSERT INTO trucks VALUES
  (1, 'RC-D932', 11000, '2020-03-30', 'electric', 'Sanna Virtanen'),
  (2, 'RC-A343', 9500, '2021-02-23', 'diesel', 'Beatriz Nowak'),
  (3, 'RC-L274', 3500, '2012-06-02', 'diesel', 'Tomas Kowalski'),
  (4, 'RC-B386', 8500, '2014-01-07', 'electric', 'Maja Tan'),
  (5, 'RC-L699', 7500, '2011-05-31', 'electric', NULL),
  (6, 'RC-D763', 11500, '2019-03-20', 'diesel', 'Maren Horvat'),
  (7, 'RC-L655', 7500, '2012-08-18', 'diesel', 'Finn Sato'),
  (8, 'RC-L308', 13000, '2022-04-02', 'diesel', 'Liam Lehtonen'),
  (9, 'RC-M814', 9500, '2023-10-18', 'electric', 'Dimitra Jansen'),
  (10, 'RC-K273', 3000, '2020-11-27', 'diesel', NULL),
  (11, 'RC-L355', 7000, '2010-02-26', 'diesel', 'Vera Ito'),
  (12, 'RC-D645', 10500, '2015-12-01', 'diesel', 'Kaisa Maier');

-- Loads brought to the plant in the first half of 2024.
--   delivery_id: Number of the delivery.
--   delivered_on (ISO date): Day of arrival.
--   truck_id: Truck that brought it.
--   district_id: District it was collected in.
--   material_id: Material.
--   weight_kg: Weight in kilograms.
--   impurity_pct: Share of wrong material in percent; NULL if not checked.
CREATE TABLE deliveries (
  delivery_id INTEGER PRIMARY KEY NOT NULL,
  delivered_on TEXT NOT NULL,
  truck_id INTEGER NOT NULL REFERENCES trucks(truck_id),
  district_id INTEGER NOT NULL REFERENCES districts(district_id),
  material_id INTEGER NOT NULL REFERENCES materials(material_id),
  weight_kg INTEGER NOT NULL,
  impurity_pct REAL
);
INSERT INTO deliveries VALUES
  (1, '2024-01-02', 3, 1, 8, 1980, 10.7),
  (2, '2024-01-02', 11, 7, 3, 4939, 7.0),
  (3, '2024-01-03', 5, 6, 3, 3428, NULL),
  (4, '2024-01-03', 6, 6, 3, 1990, 12.7),
  (5, '2024-01-04', 1, 3, 8, 2000, 4.3),
  (6, '2024-01-04', 2, 8, 8, 8840, 15.0),
  (7, '2024-01-05', 10, 9, 3, 449, 14.3),
  (8, '2024-01-05', 11, 1, 2, 2255, 17.6),
  (9, '2024-01-06', 5, 5, 2, 2973, 5.9),
  (10, '2024-01-08', 8, 9, 11, 865, 5.0),
  (11, '2024-01-08', 11, 2, 4, 3130, 7.8),
  (12, '2024-01-08', 11, 4, 7, 1899, 16.2),
  (13, '2024-01-09', 11, 5, 5, 4096, 13.2),
  (14, '2024-01-10', 6, 3, 1, 2701, 4.1),
  (15, '2024-01-12', 5, 8, 4, 1642, 7.2),
  (16, '2024-01-13', 2, 1, 5, 2733, 14.1),
  (17, '2024-01-15', 3, 2, 5, 2307, 11.6),
  (18, '2024-01-16', 4, 8, 1, 3378, 0.6),
  (19, '2024-01-17', 1, 4, 5, 10703, 8.7),
  (20, '2024-01-19', 1, 1, 1, 6983, 14.7),
  (21, '2024-01-20', 2, 3, 3, 6298, 3.7),
  (22, '2024-01-20', 6, 6, 1, 1459, 1.9),
  (23, '2024-01-23', 3, 6, 5, 2706, 13.8),
  (24, '2024-01-23', 7, 4, 5, 4027, NULL),
  (25, '2024-01-26', 5, 7, 7, 3527, 16.3),
  (26, '2024-01-27', 4, 9, 6, 4175, 0.3),
  (27, '2024-01-29', 2, 5, 6, 4227, 14.5),
  (28, '2024-01-29', 2, 9, 3, 8102, 3.7),
  (29, '2024-01-29', 6, 6, 5, 6892, 0.4),
  (30, '2024-02-04', 1, 2, 9, 692, 8.0),
  (31, '2024-02-05', 4, 6, 7, 2434, 13.3),
  (32, '2024-02-06', 5, 6, 8, 5801, 0.9),
  (33, '2024-02-06', 8, 9, 5, 11419, 11.9),
  (34, '2024-02-09', 2, 2, 4, 4598, 14.1),
  (35, '2024-02-10', 11, 1, 5, 1462, 16.1),
  (36, '2024-02-10', 11, 2, 4, 5140, 8.7),
  (37, '2024-02-12', 4, 9, 5, 1078, 3.8),
  (38, '2024-02-14', 3, 4, 2, 1964, 9.3),
  (39, '2024-02-15', 4, 6, 2, 2284, 16.8),
  (40, '2024-02-15', 6, 2, 1, 1272, 5.6),
  (41, '2024-02-15', 9, 1, 7, 2820, 2.7),
  (42, '2024-02-16', 11, 8, 7, 6575, 0.4),
  (43, '2024-02-17', 3, 9, 5, 1079, 16.2),
  (44, '2024-02-24', 10, 4, 5, 1109, NULL),
  (45, '2024-02-25', 5, 6, 7, 4106, 5.4),
  (46, '2024-02-26', 8, 8, 3, 3825, 0.3),
  (47, '2024-02-26', 10, 2, 4, 493, 4.4),
  (48, '2024-02-29', 1, 2, 3, 4932, 0.7),
  (49, '2024-03-01', 4, 3, 5, 4708, NULL),
  (50, '2024-03-01', 6, 9, 3, 7175, 12.2),
  (51, '2024-03-02', 1, 5, 8, 5246, 7.3),
  (52, '2024-03-02', 2, 9, 5, 3381, 15.4),
  (53, '2024-03-02', 8, 7, 11, 435, 6.6),
  (54, '2024-03-03', 6, 2, 7, 3337, 4.5),
  (55, '2024-03-04', 4, 4, 7, 6256, NULL),
  (56, '2024-03-05', 4, 6, 9, 522, 9.3),
  (57, '2024-03-08', 11, 2, 8, 4935, 8.3),
  (58, '2024-03-12', 3, 9, 6, 1483, 0.7),
  (59, '2024-03-13', 1, 6, 8, 8356, 4.7),
  (60, '2024-03-13', 6, 4, 6, 10545, 8.6),
  (61, '2024-03-14', 6, 1, 7, 8264, 3.9),
  (62, '2024-03-14', 6, 6, 9, 776, 9.2),
  (63, '2024-03-16', 10, 3, 10, 429, 10.5),
  (64, '2024-03-17', 6, 1, 6, 4173, 6.2),
  (65, '2024-03-18', 8, 3, 7, 2012, 8.9),
  (66, '2024-03-24', 5, 4, 3, 4691, 9.0),
  (67, '2024-03-24', 7, 3, 7, 6218, 4.7),
  (68, '2024-03-25', 4, 5, 8, 2691, 16.5),
  (69, '2024-03-26', 4, 2, 9, 55, 9.7),
  (70, '2024-03-27', 10, 6, 8, 1151, 7.5),
  (71, '2024-03-27', 10, 7, 7, 470, NULL),
  (72, '2024-03-29', 1, 7, 10, 421, 17.0),
  (73, '2024-03-29', 5, 3, 4, 1457, 11.1),
  (74, '2024-04-01', 2, 9, 11, 565, 13.5),
  (75, '2024-04-03', 1, 6, 5, 9668, 2.4),
  (76, '2024-04-03', 2, 9, 8, 3446, 11.6),
  (77, '2024-04-05', 4, 5, 7, 2101, 6.3),
  (78, '2024-04-07', 2, 4, 4, 8345, 9.8),
  (79, '2024-04-08', 9, 7, 7, 7986, 16.9),
  (80, '2024-04-09', 3, 4, 7, 2183, 13.9),
  (81, '2024-04-10', 3, 2, 6, 2718, 3.4),
  (82, '2024-04-14', 3, 9, 5, 1398, 7.7),
  (83, '2024-04-15', 4, 8, 7, 2613, NULL),
  (84, '2024-04-15', 10, 3, 3, 2031, 3.1),
  (85, '2024-04-16', 6, 6, 6, 1153, NULL),
  (86, '2024-04-17', 6, 3, 2, 4995, 11.6),
  (87, '2024-04-17', 11, 3, 3, 6785, 14.8),
  (88, '2024-04-18', 7, 5, 8, 2915, 14.8),
  (89, '2024-04-20', 7, 8, 7, 1799, 7.7),
  (90, '2024-04-21', 4, 7, 8, 7933, 4.7),
  (91, '2024-04-21', 5, 3, 3, 1049, 5.6),
  (92, '2024-04-22', 5, 7, 6, 7498, 3.8),
  (93, '2024-04-24', 3, 2, 3, 1366, 4.6),
  (94, '2024-04-25', 2, 5, 8, 4819, 15.3),
  (95, '2024-04-25', 7, 1, 4, 2168, 4.2),
  (96, '2024-04-26', 3, 2, 6, 2802, 6.0),
  (97, '2024-05-01', 1, 5, 8, 2328, 1.5),
  (98, '2024-05-01', 2, 4, 3, 5258, 6.8),
  (99, '2024-05-02', 7, 1, 11, 109, 4.1),
  (100, '2024-05-03', 3, 7, 4, 1254, NULL),
  (101, '2024-05-03', 7, 4, 5, 7219, 9.4),
  (102, '2024-05-05', 7, 5, 8, 1041, 2.3),
  (103, '2024-05-07', 1, 8, 5, 2997, 14.5),
  (104, '2024-05-07', 4, 7, 4, 2299, 0.4),
  (105, '2024-05-08', 8, 3, 5, 8262, NULL),
  (106, '2024-05-08', 10, 7, 4, 384, 5.6),
  (107, '2024-05-10', 4, 3, 1, 6467, NULL),
  (108, '2024-05-11', 4, 5, 3, 5775, 3.1),
  (109, '2024-05-11', 11, 2, 5, 1241, 1.2),
  (110, '2024-05-12', 11, 8, 5, 4661, NULL),
  (111, '2024-05-13', 2, 4, 5, 2007, 11.2),
  (112, '2024-05-15', 3, 4, 6, 2199, 1.1),
  (113, '2024-05-17', 5, 9, 4, 1638, 4.4),
  (114, '2024-05-18', 1, 1, 3, 1485, NULL),
  (115, '2024-05-18', 3, 2, 5, 2266, 7.9),
  (116, '2024-05-21', 7, 3, 6, 4040, 9.1),
  (117, '2024-05-28', 8, 2, 7, 12386, 2.1),
  (118, '2024-05-29', 6, 2, 5, 6738, 3.5),
  (119, '2024-05-30', 10, 8, 1, 653, 9.2),
  (120, '2024-05-31', 6, 6, 2, 5311, 1.7),
  (121, '2024-06-02', 1, 5, 1, 4022, 14.0),
  (122, '2024-06-03', 8, 1, 1, 11227, 15.0),
  (123, '2024-06-04', 3, 7, 4, 2378, 14.9),
  (124, '2024-06-04', 3, 7, 7, 1055, 13.6),
  (125, '2024-06-09', 2, 4, 9, 546, 0.8),
  (126, '2024-06-09', 3, 2, 2, 1814, 8.6),
  (127, '2024-06-09', 11, 5, 1, 4410, 13.4),
  (128, '2024-06-10', 5, 8, 3, 2230, 14.0),
  (129, '2024-06-11', 9, 8, 5, 7955, 2.1),
  (130, '2024-06-12', 1, 6, 6, 1441, 16.5),
  (131, '2024-06-12', 6, 9, 5, 10368, 2.7),
  (132, '2024-06-12', 10, 9, 8, 503, 17.9),
  (133, '2024-06-13', 1, 8, 2, 4540, 6.7),
  (134, '2024-06-13', 6, 6, 1, 9721, 17.9),
  (135, '2024-06-14', 5, 6, 5, 5893, 11.8),
  (136, '2024-06-14', 11, 8, 1, 5672, 7.2),
  (137, '2024-06-15', 5, 9, 3, 7175, NULL),
  (138, '2024-06-15', 7, 2, 4, 2898, NULL),
  (139, '2024-06-18', 7, 4, 8, 5833, NULL),
  (140, '2024-06-18', 10, 1, 3, 2397, 14.2),
  (141, '2024-06-19', 2, 2, 4, 9134, NULL),
  (142, '2024-06-20', 6, 2, 1, 1942, 16.8),
  (143, '2024-06-21', 10, 7, 9, 447, 15.5),
  (144, '2024-06-23', 7, 1, 11, 327, 6.3),
  (145, '2024-06-25', 2, 9, 5, 6992, 5.0),
  (146, '2024-06-25', 7, 9, 6, 5066, 14.7),
  (147, '2024-06-25', 10, 9, 7, 2085, NULL),
  (148, '2024-06-26', 3, 5, 2, 3423, 2.7),
  (149, '2024-06-27', 11, 6, 11, 841, 16.2),
  (150, '2024-06-29', 2, 8, 1, 4825, 1.7);

-- Machines of the sorting hall.
--   machine_id: Number of the machine.
--   name: Name of the machine.
--   maker: Company that made it.
--   installed_year: Year of installation.
--   power_kw: Electric power in kilowatts.
CREATE TABLE machines (
  machine_id INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  maker TEXT NOT NULL,
  installed_year INTEGER NOT NULL,
  power_kw REAL NOT NULL
);
INSERT INTO machines VALUES
  (1, 'Shredder A', 'Volmer', 2012, 160.0),
  (2, 'Shredder B', 'Volmer', 2020, 185.5),
  (3, 'Magnet drum', 'Ferrotec', 2008, 22.0),
  (4, 'Eddy separator', 'Ferrotec', 2016, 37.5),
  (5, 'Optical sorter', 'Lumisort', 2021, 14.8),
  (6, 'Baler', 'Presswerk', 2010, 90.0),
  (7, 'Glass crusher', 'Presswerk', 2015, 75.0),
  (8, 'Air classifier', 'Ventor', 2018, 55.0),
  (9, 'Hand line', 'Presswerk', 2006, 4.5);

-- Which machine can handle which material.
--   machine_id: The machine.
--   material_id: The material.
--   kg_per_hour: Throughput in kilograms per hour.
CREATE TABLE machine_materials (
  machine_id INTEGER NOT NULL REFERENCES machines(machine_id),
  material_id INTEGER NOT NULL REFERENCES materials(material_id),
  kg_per_hour INTEGER NOT NULL,
  PRIMARY KEY (machine_id, material_id)
);
INSERT INTO machine_materials VALUES
  (1, 5, 3950),
  (1, 6, 3100),
  (1, 8, 3050),
  (2, 5, 4450),
  (2, 6, 2150),
  (3, 8, 2850),
  (3, 9, 2200),
  (4, 7, 1800),
  (5, 1, 1700),
  (5, 2, 1650),
  (5, 5, 1650),
  (5, 6, 3450),
  (6, 3, 900),
  (6, 4, 4350),
  (6, 5, 1600),
  (6, 6, 2200),
  (6, 7, 2500),
  (7, 1, 3400),
  (7, 2, 1700),
  (8, 4, 2050),
  (8, 6, 3400),
  (9, 3, 75),
  (9, 5, 125),
  (9, 9, 75),
  (9, 10, 100);

COMMIT;
