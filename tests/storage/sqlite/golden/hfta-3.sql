-- What `storage_sample write FILE sample` wrote when the store's schema number was 3 (iterdump of Python's sqlite3).
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
  version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
INSERT INTO "alembic_version" VALUES('v3.2.0.a');
CREATE TABLE hfta_arrays (
  study_id INTEGER NOT NULL REFERENCES studies (study_id), array INTEGER NOT NULL, device TEXT NOT NULL,
  partition TEXT NOT NULL, width INTEGER NOT NULL, chunk INTEGER NOT NULL, threads INTEGER NOT NULL,
  choices_json TEXT NOT NULL, PRIMARY KEY (study_id, array)) WITHOUT ROWID;
INSERT INTO "hfta_arrays" VALUES(1,0,'cpu','hidden=64',3,1,4,'{"conv1":{"chosen":"loop","how":"remembered"}}');
INSERT INTO "hfta_arrays" VALUES(1,1,'cpu','hidden=128',1,1,1,'{}');
CREATE TABLE hfta_epoch_metrics (
  trial_id INTEGER NOT NULL REFERENCES trials (trial_id), epoch INTEGER NOT NULL, name TEXT NOT NULL, value REAL,
  value_type TEXT NOT NULL CHECK (value_type IN ('FINITE', 'INF_POS', 'INF_NEG', 'NAN')),
  PRIMARY KEY (trial_id, epoch, name)) WITHOUT ROWID;
INSERT INTO "hfta_epoch_metrics" VALUES(1,1,'train_loss',1.0,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(1,1,'val_accuracy',0.5,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(1,2,'train_loss',0.5,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(1,2,'val_accuracy',0.75,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(2,1,'train_loss',0.5,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(2,1,'val_accuracy',5.33333333333333325931e-01,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(3,1,'train_loss',3.33333333333333314829e-01,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(3,1,'val_accuracy',NULL,'NAN');
INSERT INTO "hfta_epoch_metrics" VALUES(4,1,'train_loss',0.25,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(4,1,'val_accuracy',0.6,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(4,2,'train_loss',0.2,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(4,2,'val_accuracy',0.625,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(5,1,'train_loss',0.2,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(5,1,'val_accuracy',NULL,'INF_NEG');
INSERT INTO "hfta_epoch_metrics" VALUES(6,1,'train_loss',1.66666666666666657414e-01,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(6,1,'val_accuracy',6.66666666666666629659e-01,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(6,2,'train_loss',1.42857142857142849212e-01,'FINITE');
INSERT INTO "hfta_epoch_metrics" VALUES(6,2,'val_accuracy',0.875,'FINITE');
CREATE TABLE hfta_home (id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), path TEXT NOT NULL);
INSERT INTO "hfta_home" VALUES(1,'/somewhere/else/sample.db');
CREATE TABLE hfta_leases (
  study_name TEXT NOT NULL PRIMARY KEY, fence INTEGER NOT NULL, token TEXT NOT NULL, holder TEXT NOT NULL);
INSERT INTO "hfta_leases" VALUES('sample',1,'adele-4711-Xa0Yb1','process 4711 on host adele');
CREATE TABLE hfta_meta (
  id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), schema_version INTEGER NOT NULL, library_version TEXT NOT NULL);
INSERT INTO "hfta_meta" VALUES(1,3,'0.1.0');
CREATE TABLE hfta_occupancy (
  study_id INTEGER NOT NULL REFERENCES studies (study_id), round INTEGER NOT NULL, array INTEGER NOT NULL,
  slot INTEGER NOT NULL, trial_id INTEGER NOT NULL REFERENCES trials (trial_id), epoch INTEGER NOT NULL,
  PRIMARY KEY (study_id, round, array, slot)) WITHOUT ROWID;
INSERT INTO "hfta_occupancy" VALUES(1,0,0,0,1,1);
INSERT INTO "hfta_occupancy" VALUES(1,0,0,1,2,1);
INSERT INTO "hfta_occupancy" VALUES(1,0,0,2,3,1);
INSERT INTO "hfta_occupancy" VALUES(1,0,0,3,4,1);
INSERT INTO "hfta_occupancy" VALUES(1,0,0,4,5,1);
INSERT INTO "hfta_occupancy" VALUES(1,0,0,5,6,1);
INSERT INTO "hfta_occupancy" VALUES(1,1,0,0,1,2);
INSERT INTO "hfta_occupancy" VALUES(1,1,0,3,4,2);
INSERT INTO "hfta_occupancy" VALUES(1,1,0,5,6,2);
CREATE TABLE hfta_rounds (
  study_id INTEGER NOT NULL REFERENCES studies (study_id), round INTEGER NOT NULL, array INTEGER NOT NULL,
  width INTEGER NOT NULL, occupied INTEGER NOT NULL, seconds REAL NOT NULL,
  PRIMARY KEY (study_id, round, array)) WITHOUT ROWID;
INSERT INTO "hfta_rounds" VALUES(1,0,0,6,6,0.1);
INSERT INTO "hfta_rounds" VALUES(1,1,0,3,3,1.1);
CREATE TABLE hfta_studies (
  study_id INTEGER NOT NULL PRIMARY KEY REFERENCES studies (study_id), metric TEXT NOT NULL, config TEXT NOT NULL,
  config_json TEXT NOT NULL, space_json TEXT NOT NULL, run_caps_json TEXT NOT NULL, library_version TEXT NOT NULL);
INSERT INTO "hfta_studies" VALUES(1,'val_accuracy','study: sample  # comment
method: random
unusual: €
','{"method":"random"}','[{"integer":false,"kind":"constant","max":1.0,"min":0.0,"mu":0.0,"name":"constant","probabilities":[],"q":1.0,"sigma":1.0,"values":["adamw"]},{"integer":false,"kind":"categorical","max":1.0,"min":0.0,"mu":0.0,"name":"categorical","probabilities":[0.2,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1],"q":1.0,"sigma":1.0,"values":[null,true,3,0.1,"wörd \"quoted\"",3.0,"3",false,""]},{"integer":false,"kind":"int_uniform","max":9.223372036854776e+18,"min":-5.0,"mu":0.0,"name":"int_uniform","probabilities":[],"q":1.0,"sigma":1.0,"values":[]},{"integer":false,"kind":"uniform","max":1.0,"min":-1.0,"mu":0.0,"name":"uniform","probabilities":[],"q":1.0,"sigma":1.0,"values":[]},{"integer":false,"kind":"q_uniform","max":0.8,"min":0.3,"mu":0.0,"name":"q_uniform","probabilities":[],"q":0.5,"sigma":1.0,"values":[]},{"integer":false,"kind":"log_uniform","max":0.1,"min":-9.5,"mu":0.0,"name":"log_uniform","probabilities":[],"q":1.0,"sigma":1.0,"values":[]},{"integer":false,"kind":"q_log_uniform","max":5.0,"min":0.0,"mu":0.0,"name":"q_log_uniform","probabilities":[],"q":2.0,"sigma":1.0,"values":[]},{"integer":false,"kind":"log_uniform_values","max":1.0,"min":0.0001,"mu":0.0,"name":"log_uniform_values","probabilities":[],"q":1.0,"sigma":1.0,"values":[]},{"integer":true,"kind":"q_log_uniform_values","max":512.0,"min":8.0,"mu":0.0,"name":"q_log_uniform_values","probabilities":[],"q":8.0,"sigma":1.0,"values":[]},{"integer":false,"kind":"inv_log_uniform","max":3.0,"min":1.0,"mu":0.0,"name":"inv_log_uniform","probabilities":[],"q":1.0,"sigma":1.0,"values":[]},{"integer":false,"kind":"inv_log_uniform_values","max":0.1,"min":0.001,"mu":0.0,"name":"inv_log_uniform_values","probabilities":[],"q":1.0,"sigma":1.0,"values":[]},{"integer":false,"kind":"normal","max":1.0,"min":0.0,"mu":0.0,"name":"normal","probabilities":[],"q":1.0,"sigma":0.1,"values":[]},{"integer":false,"kind":"q_normal","max":1.0,"min":0.0,"mu":5.0,"name":"q_normal","probabilities":[],"q":0.25,"sigma":2.0,"values":[]},{"integer":false,"kind":"log_normal","max":1.0,"min":0.0,"mu":-3.0,"name":"log_normal","probabilities":[],"q":1.0,"sigma":1.0,"values":[]},{"integer":false,"kind":"q_log_normal","max":1.0,"min":0.0,"mu":1.0,"name":"q_log_normal","probabilities":[],"q":0.5,"sigma":1.0,"values":[]},{"integer":true,"kind":"q_uniform","max":128.0,"min":16.0,"mu":0.0,"name":"whole.q","probabilities":[],"q":16.0,"sigma":1.0,"values":[]}]','[3,6]','0.1.0');
CREATE TABLE hfta_test_metrics (
  trial_id INTEGER NOT NULL REFERENCES trials (trial_id), name TEXT NOT NULL, value REAL,
  value_type TEXT NOT NULL CHECK (value_type IN ('FINITE', 'INF_POS', 'INF_NEG', 'NAN')),
  PRIMARY KEY (trial_id, name)) WITHOUT ROWID;
INSERT INTO "hfta_test_metrics" VALUES(6,'test_accuracy',0.8125,'FINITE');
INSERT INTO "hfta_test_metrics" VALUES(6,'test_loss',NULL,'INF_POS');
CREATE TABLE hfta_trials (
  trial_id INTEGER NOT NULL PRIMARY KEY REFERENCES trials (trial_id),
  study_id INTEGER NOT NULL REFERENCES studies (study_id), draw INTEGER NOT NULL, reason TEXT NOT NULL DEFAULT '',
  exact_json TEXT, UNIQUE (study_id, draw));
INSERT INTO "hfta_trials" VALUES(1,1,0,'','{"int_uniform":9007199254740993,"uniform":-0.0}');
INSERT INTO "hfta_trials" VALUES(2,1,1,'','{"int_uniform":9223372036854775807}');
INSERT INTO "hfta_trials" VALUES(3,1,2,'val_accuracy is NaN at epoch 1',NULL);
INSERT INTO "hfta_trials" VALUES(4,1,3,'',NULL);
INSERT INTO "hfta_trials" VALUES(5,1,4,'val_accuracy is -inf at epoch 1','{"int_uniform":9007199254740992}');
INSERT INTO "hfta_trials" VALUES(6,1,5,'','{"int_uniform":12345678901234567}');
CREATE TABLE studies (
  study_id INTEGER NOT NULL, study_name VARCHAR(512) NOT NULL, PRIMARY KEY (study_id));
INSERT INTO "studies" VALUES(1,'sample');
CREATE TABLE study_directions (
  study_direction_id INTEGER NOT NULL, direction VARCHAR(8) NOT NULL, study_id INTEGER NOT NULL,
  objective INTEGER NOT NULL, PRIMARY KEY (study_direction_id), UNIQUE (study_id, objective),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
INSERT INTO "study_directions" VALUES(1,'MAXIMIZE',1,0);
CREATE TABLE study_system_attributes (
  study_system_attribute_id INTEGER NOT NULL, study_id INTEGER, "key" VARCHAR(512), value_json TEXT,
  PRIMARY KEY (study_system_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
INSERT INTO "study_system_attributes" VALUES(1,1,'study:metric_names','["val_accuracy"]');
CREATE TABLE study_user_attributes (
  study_user_attribute_id INTEGER NOT NULL, study_id INTEGER, "key" VARCHAR(512), value_json TEXT,
  PRIMARY KEY (study_user_attribute_id), UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
CREATE TABLE trial_heartbeats (
  trial_heartbeat_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, heartbeat DATETIME NOT NULL,
  PRIMARY KEY (trial_heartbeat_id), UNIQUE (trial_id),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_intermediate_values (
  trial_intermediate_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, step INTEGER NOT NULL,
  intermediate_value FLOAT, intermediate_value_type VARCHAR(7) NOT NULL,
  PRIMARY KEY (trial_intermediate_value_id), UNIQUE (trial_id, step),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
INSERT INTO "trial_intermediate_values" VALUES(1,1,1,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(2,2,1,5.33333333333333325931e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(3,3,1,NULL,'NAN');
INSERT INTO "trial_intermediate_values" VALUES(4,4,1,0.6,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(5,5,1,NULL,'INF_NEG');
INSERT INTO "trial_intermediate_values" VALUES(6,6,1,6.66666666666666629659e-01,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(7,1,2,0.75,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(8,4,2,0.625,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(9,6,2,0.875,'FINITE');
CREATE TABLE trial_params (
  param_id INTEGER NOT NULL, trial_id INTEGER, param_name VARCHAR(512), param_value FLOAT,
  distribution_json TEXT, PRIMARY KEY (param_id), UNIQUE (trial_id, param_name),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
INSERT INTO "trial_params" VALUES(1,1,'constant',0.0,'{"attributes":{"choices":["adamw"]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(2,1,'categorical',0.0,'{"attributes":{"choices":[null,true,3,0.1,"wörd \"quoted\"",3.0,"3",false,""]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(3,1,'int_uniform',9.00719925474099199994e+15,'{"attributes":{"high":9223372036854775808,"log":false,"low":-5,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(4,1,'uniform',0.0,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(5,1,'q_uniform',0.5,'{"attributes":{"high":1.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(6,1,'log_uniform',7.48518298877006e-05,'{"attributes":{"high":1.1051709180756477,"log":true,"low":7.48518298877006e-05,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(7,1,'q_log_uniform',0.0,'{"attributes":{"high":150.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(8,1,'log_uniform_values',0.1,'{"attributes":{"high":1.0,"log":true,"low":0.0001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(9,1,'q_log_uniform_values',8.0,'{"attributes":{"high":512,"log":true,"low":8,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(10,1,'inv_log_uniform',3.67879441171442334024e-01,'{"attributes":{"high":0.36787944117144233,"log":true,"low":0.049787068367863944,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(11,1,'inv_log_uniform_values',0.1,'{"attributes":{"high":0.1,"log":true,"low":0.001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(12,1,'normal',-0.85,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(13,1,'q_normal',-5.0,'{"attributes":{"high":25.0,"log":false,"low":-15.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(14,1,'log_normal',4.97870683678639444624e-02,'{"attributes":{"high":1096.6331584284585,"log":true,"low":2.2603294069810542e-06,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(15,1,'q_log_normal',0.0,'{"attributes":{"high":59874.5,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(16,1,'whole.q',16.0,'{"attributes":{"high":128,"log":false,"low":16,"step":16},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(17,2,'constant',0.0,'{"attributes":{"choices":["adamw"]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(18,2,'categorical',1.0,'{"attributes":{"choices":[null,true,3,0.1,"wörd \"quoted\"",3.0,"3",false,""]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(19,2,'int_uniform',9.2233720368547758078e+18,'{"attributes":{"high":9223372036854775808,"log":false,"low":-5,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(20,2,'uniform',-6.66666666666666740681e-01,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(21,2,'q_uniform',1.0,'{"attributes":{"high":1.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(22,2,'log_uniform',2.03468369010644168541e-04,'{"attributes":{"high":1.1051709180756477,"log":true,"low":7.48518298877006e-05,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(23,2,'q_log_uniform',2.0,'{"attributes":{"high":150.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(24,2,'log_uniform_values',1.6666666666666668517e-01,'{"attributes":{"high":1.0,"log":true,"low":0.0001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(25,2,'q_log_uniform_values',16.0,'{"attributes":{"high":512,"log":true,"low":8,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(26,2,'inv_log_uniform',2.63597138115726770113e-01,'{"attributes":{"high":0.36787944117144233,"log":true,"low":0.049787068367863944,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(27,2,'inv_log_uniform_values',0.05,'{"attributes":{"high":0.1,"log":true,"low":0.001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(28,2,'normal',-0.6,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(29,2,'q_normal',-4.75,'{"attributes":{"high":25.0,"log":false,"low":-15.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(30,2,'log_normal',1.83156388887341786686e-02,'{"attributes":{"high":1096.6331584284585,"log":true,"low":2.2603294069810542e-06,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(31,2,'q_log_normal',0.5,'{"attributes":{"high":59874.5,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(32,2,'whole.q',32.0,'{"attributes":{"high":128,"log":false,"low":16,"step":16},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(33,3,'constant',0.0,'{"attributes":{"choices":["adamw"]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(34,3,'categorical',2.0,'{"attributes":{"choices":[null,true,3,0.1,"wörd \"quoted\"",3.0,"3",false,""]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(35,3,'int_uniform',-5.0,'{"attributes":{"high":9223372036854775808,"log":false,"low":-5,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(36,3,'uniform',-3.3333333333333337034e-01,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(37,3,'q_uniform',0.5,'{"attributes":{"high":1.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(38,3,'log_uniform',5.5308437014783362693e-04,'{"attributes":{"high":1.1051709180756477,"log":true,"low":7.48518298877006e-05,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(39,3,'q_log_uniform',4.0,'{"attributes":{"high":150.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(40,3,'log_uniform_values',2.33333333333333337034e-01,'{"attributes":{"high":1.0,"log":true,"low":0.0001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(41,3,'q_log_uniform_values',24.0,'{"attributes":{"high":512,"log":true,"low":8,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(42,3,'inv_log_uniform',1.8887560283756185675e-01,'{"attributes":{"high":0.36787944117144233,"log":true,"low":0.049787068367863944,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(43,3,'inv_log_uniform_values',3.33333333333333328707e-02,'{"attributes":{"high":0.1,"log":true,"low":0.001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(44,3,'normal',-0.35,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(45,3,'q_normal',-4.5,'{"attributes":{"high":25.0,"log":false,"low":-15.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(46,3,'log_normal',6.73794699908546700084e-03,'{"attributes":{"high":1096.6331584284585,"log":true,"low":2.2603294069810542e-06,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(47,3,'q_log_normal',1.0,'{"attributes":{"high":59874.5,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(48,3,'whole.q',48.0,'{"attributes":{"high":128,"log":false,"low":16,"step":16},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(49,4,'constant',0.0,'{"attributes":{"choices":["adamw"]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(50,4,'categorical',3.0,'{"attributes":{"choices":[null,true,3,0.1,"wörd \"quoted\"",3.0,"3",false,""]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(51,4,'int_uniform',0.0,'{"attributes":{"high":9223372036854775808,"log":false,"low":-5,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(52,4,'uniform',0.0,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(53,4,'q_uniform',1.0,'{"attributes":{"high":1.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(54,4,'log_uniform',1.50343919297757236744e-03,'{"attributes":{"high":1.1051709180756477,"log":true,"low":7.48518298877006e-05,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(55,4,'q_log_uniform',6.0,'{"attributes":{"high":150.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(56,4,'log_uniform_values',3.00000000000000044408e-01,'{"attributes":{"high":1.0,"log":true,"low":0.0001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(57,4,'q_log_uniform_values',32.0,'{"attributes":{"high":512,"log":true,"low":8,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(58,4,'inv_log_uniform',1.35335283236612702317e-01,'{"attributes":{"high":0.36787944117144233,"log":true,"low":0.049787068367863944,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(59,4,'inv_log_uniform_values',0.025,'{"attributes":{"high":0.1,"log":true,"low":0.001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(60,4,'normal',-9.99999999999999777955e-02,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(61,4,'q_normal',-4.25,'{"attributes":{"high":25.0,"log":false,"low":-15.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(62,4,'log_normal',2.47875217666635849073e-03,'{"attributes":{"high":1096.6331584284585,"log":true,"low":2.2603294069810542e-06,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(63,4,'q_log_normal',1.5,'{"attributes":{"high":59874.5,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(64,4,'whole.q',64.0,'{"attributes":{"high":128,"log":false,"low":16,"step":16},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(65,5,'constant',0.0,'{"attributes":{"choices":["adamw"]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(66,5,'categorical',4.0,'{"attributes":{"choices":[null,true,3,0.1,"wörd \"quoted\"",3.0,"3",false,""]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(67,5,'int_uniform',9.00719925474099199994e+15,'{"attributes":{"high":9223372036854775808,"log":false,"low":-5,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(68,5,'uniform',3.33333333333333259318e-01,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(69,5,'q_uniform',0.5,'{"attributes":{"high":1.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(70,5,'log_uniform',4.08677143846406659699e-03,'{"attributes":{"high":1.1051709180756477,"log":true,"low":7.48518298877006e-05,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(71,5,'q_log_uniform',8.0,'{"attributes":{"high":150.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(72,5,'log_uniform_values',3.66666666666666696272e-01,'{"attributes":{"high":1.0,"log":true,"low":0.0001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(73,5,'q_log_uniform_values',40.0,'{"attributes":{"high":512,"log":true,"low":8,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(74,5,'inv_log_uniform',0.0969719678644051,'{"attributes":{"high":0.36787944117144233,"log":true,"low":0.049787068367863944,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(75,5,'inv_log_uniform_values',0.02,'{"attributes":{"high":0.1,"log":true,"low":0.001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(76,5,'normal',1.50000000000000022204e-01,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(77,5,'q_normal',-4.0,'{"attributes":{"high":25.0,"log":false,"low":-15.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(78,5,'log_normal',9.11881965554516243747e-04,'{"attributes":{"high":1096.6331584284585,"log":true,"low":2.2603294069810542e-06,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(79,5,'q_log_normal',2.0,'{"attributes":{"high":59874.5,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(80,5,'whole.q',80.0,'{"attributes":{"high":128,"log":false,"low":16,"step":16},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(81,6,'constant',0.0,'{"attributes":{"choices":["adamw"]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(82,6,'categorical',5.0,'{"attributes":{"choices":[null,true,3,0.1,"wörd \"quoted\"",3.0,"3",false,""]},"name":"CategoricalDistribution"}');
INSERT INTO "trial_params" VALUES(83,6,'int_uniform',1.23456789012345680004e+16,'{"attributes":{"high":9223372036854775808,"log":false,"low":-5,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(84,6,'uniform',6.66666666666666740681e-01,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(85,6,'q_uniform',1.0,'{"attributes":{"high":1.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(86,6,'log_uniform',1.11089965382423060819e-02,'{"attributes":{"high":1.1051709180756477,"log":true,"low":7.48518298877006e-05,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(87,6,'q_log_uniform',10.0,'{"attributes":{"high":150.0,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(88,6,'log_uniform_values',4.33333333333333348136e-01,'{"attributes":{"high":1.0,"log":true,"low":0.0001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(89,6,'q_log_uniform_values',48.0,'{"attributes":{"high":512,"log":true,"low":8,"step":1},"name":"IntDistribution"}');
INSERT INTO "trial_params" VALUES(90,6,'inv_log_uniform',6.94834512228015149792e-02,'{"attributes":{"high":0.36787944117144233,"log":true,"low":0.049787068367863944,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(91,6,'inv_log_uniform_values',1.66666666666666664353e-02,'{"attributes":{"high":0.1,"log":true,"low":0.001,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(92,6,'normal',0.4,'{"attributes":{"high":1.0,"log":false,"low":-1.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(93,6,'q_normal',-3.75,'{"attributes":{"high":25.0,"log":false,"low":-15.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(94,6,'log_normal',3.35462627902511853223e-04,'{"attributes":{"high":1096.6331584284585,"log":true,"low":2.2603294069810542e-06,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(95,6,'q_log_normal',2.5,'{"attributes":{"high":59874.5,"log":false,"low":0.0,"step":null},"name":"FloatDistribution"}');
INSERT INTO "trial_params" VALUES(96,6,'whole.q',96.0,'{"attributes":{"high":128,"log":false,"low":16,"step":16},"name":"IntDistribution"}');
CREATE TABLE trial_system_attributes (
  trial_system_attribute_id INTEGER NOT NULL, trial_id INTEGER, "key" VARCHAR(512), value_json TEXT,
  PRIMARY KEY (trial_system_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_user_attributes (
  trial_user_attribute_id INTEGER NOT NULL, trial_id INTEGER, "key" VARCHAR(512), value_json TEXT,
  PRIMARY KEY (trial_user_attribute_id), UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
CREATE TABLE trial_values (
  trial_value_id INTEGER NOT NULL, trial_id INTEGER NOT NULL, objective INTEGER NOT NULL,
  value FLOAT, value_type VARCHAR(7) NOT NULL, PRIMARY KEY (trial_value_id),
  UNIQUE (trial_id, objective), FOREIGN KEY(trial_id) REFERENCES trials (trial_id));
INSERT INTO "trial_values" VALUES(1,2,0,5.33333333333333325931e-01,'FINITE');
INSERT INTO "trial_values" VALUES(2,1,0,0.75,'FINITE');
INSERT INTO "trial_values" VALUES(3,6,0,0.875,'FINITE');
CREATE TABLE trials (
  trial_id INTEGER NOT NULL, number INTEGER, study_id INTEGER, state VARCHAR(8) NOT NULL,
  datetime_start DATETIME, datetime_complete DATETIME, PRIMARY KEY (trial_id),
  FOREIGN KEY(study_id) REFERENCES studies (study_id));
INSERT INTO "trials" VALUES(1,0,1,'COMPLETE','2026-11-21 07:00:01.000000','2026-11-21 07:00:31.000000');
INSERT INTO "trials" VALUES(2,1,1,'PRUNED','2026-11-21 07:00:02.000000','2026-11-21 07:00:20.500000');
INSERT INTO "trials" VALUES(3,2,1,'FAIL','2026-11-21 07:00:03.000000','2026-11-21 07:00:20.250000');
INSERT INTO "trials" VALUES(4,3,1,'RUNNING','2026-11-21 07:00:04.000000',NULL);
INSERT INTO "trials" VALUES(5,4,1,'FAIL','2026-11-21 07:00:05.000000','2026-11-21 07:00:20.000001');
INSERT INTO "trials" VALUES(6,5,1,'COMPLETE','2026-11-21 07:00:06.000000','2026-11-21 07:00:32.000000');
CREATE TABLE version_info (
  version_info_id INTEGER NOT NULL, schema_version INTEGER, library_version VARCHAR(256),
  PRIMARY KEY (version_info_id), CHECK (version_info_id=1));
INSERT INTO "version_info" VALUES(1,12,'5.0.0');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
CREATE TRIGGER hfta_forget_trial AFTER DELETE ON trials BEGIN
  DELETE FROM hfta_epoch_metrics WHERE trial_id = old.trial_id;
  DELETE FROM hfta_test_metrics WHERE trial_id = old.trial_id;
  DELETE FROM hfta_occupancy WHERE study_id = old.study_id AND trial_id = old.trial_id;
  DELETE FROM hfta_trials WHERE trial_id = old.trial_id;
END;
CREATE TRIGGER hfta_forget_study AFTER DELETE ON studies BEGIN
  DELETE FROM hfta_occupancy WHERE study_id = old.study_id;
  DELETE FROM hfta_rounds WHERE study_id = old.study_id;
  DELETE FROM hfta_arrays WHERE study_id = old.study_id;
  DELETE FROM hfta_trials WHERE study_id = old.study_id;
  DELETE FROM hfta_studies WHERE study_id = old.study_id;
END;
CREATE TRIGGER hfta_forget_lease AFTER DELETE ON studies BEGIN
  DELETE FROM hfta_leases WHERE study_name = old.study_name;
END;
COMMIT;
