-- Made by make_optuna_golden.py with Optuna 5.0.0.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v3.2.0.a');
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	PRIMARY KEY (study_id)
);
INSERT INTO "studies" VALUES(1,'first');
INSERT INTO "studies" VALUES(2,'golden');
CREATE TABLE study_directions (
	study_direction_id INTEGER NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	study_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	PRIMARY KEY (study_direction_id), 
	UNIQUE (study_id, objective), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_directions" VALUES(1,'MINIMIZE',1,0);
INSERT INTO "study_directions" VALUES(2,'MAXIMIZE',2,0);
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_system_attributes" VALUES(1,2,'study:metric_names','["val_accuracy"]');
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_user_attributes" VALUES(1,2,'who','"optuna"');
CREATE TABLE trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	PRIMARY KEY (trial_heartbeat_id), 
	UNIQUE (trial_id), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	intermediate_value FLOAT, 
	intermediate_value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_intermediate_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_intermediate_values" VALUES(1,1,1,0.5,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(2,1,2,0.75,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(3,2,1,0.25,'FINITE');
INSERT INTO "trial_intermediate_values" VALUES(4,3,1,NULL,'NAN');
INSERT INTO "trial_intermediate_values" VALUES(5,4,3,NULL,'INF_POS');
INSERT INTO "trial_intermediate_values" VALUES(6,4,7,NULL,'INF_NEG');
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json TEXT, 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_params" VALUES(1,1,'lr',1.0e-05,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(2,1,'momentum',0.0,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.9, "log": false}}');
INSERT INTO "trial_params" VALUES(3,1,'batch',16.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 16, "low": 16, "high": 128}}');
INSERT INTO "trial_params" VALUES(4,1,'width',8.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 8, "high": 512}}');
INSERT INTO "trial_params" VALUES(5,1,'opt',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["sgd", null, true, 3, 3.5, "w\u00f6rd", NaN]}}');
INSERT INTO "trial_params" VALUES(6,2,'lr',2.0e-05,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(7,2,'momentum',0.1,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.9, "log": false}}');
INSERT INTO "trial_params" VALUES(8,2,'batch',32.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 16, "low": 16, "high": 128}}');
INSERT INTO "trial_params" VALUES(9,2,'width',9.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 8, "high": 512}}');
INSERT INTO "trial_params" VALUES(10,2,'opt',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["sgd", null, true, 3, 3.5, "w\u00f6rd", NaN]}}');
INSERT INTO "trial_params" VALUES(11,3,'lr',4.0e-05,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(12,3,'momentum',0.2,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.9, "log": false}}');
INSERT INTO "trial_params" VALUES(13,3,'batch',48.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 16, "low": 16, "high": 128}}');
INSERT INTO "trial_params" VALUES(14,3,'width',10.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 8, "high": 512}}');
INSERT INTO "trial_params" VALUES(15,3,'opt',2.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["sgd", null, true, 3, 3.5, "w\u00f6rd", NaN]}}');
INSERT INTO "trial_params" VALUES(16,4,'lr',8.0e-05,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(17,4,'momentum',3.00000000000000044408e-01,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.9, "log": false}}');
INSERT INTO "trial_params" VALUES(18,4,'batch',64.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 16, "low": 16, "high": 128}}');
INSERT INTO "trial_params" VALUES(19,4,'width',11.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 8, "high": 512}}');
INSERT INTO "trial_params" VALUES(20,4,'opt',3.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["sgd", null, true, 3, 3.5, "w\u00f6rd", NaN]}}');
INSERT INTO "trial_params" VALUES(21,5,'lr',0.00016,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(22,5,'momentum',0.4,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.9, "log": false}}');
INSERT INTO "trial_params" VALUES(23,5,'batch',80.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 16, "low": 16, "high": 128}}');
INSERT INTO "trial_params" VALUES(24,5,'width',12.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 8, "high": 512}}');
INSERT INTO "trial_params" VALUES(25,5,'opt',4.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["sgd", null, true, 3, 3.5, "w\u00f6rd", NaN]}}');
INSERT INTO "trial_params" VALUES(26,6,'lr',0.00032,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-05, "high": 0.1, "log": true}}');
INSERT INTO "trial_params" VALUES(27,6,'momentum',0.5,'{"name": "FloatDistribution", "attributes": {"step": 0.1, "low": 0.0, "high": 0.9, "log": false}}');
INSERT INTO "trial_params" VALUES(28,6,'batch',96.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 16, "low": 16, "high": 128}}');
INSERT INTO "trial_params" VALUES(29,6,'width',13.0,'{"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 8, "high": 512}}');
INSERT INTO "trial_params" VALUES(30,6,'opt',5.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["sgd", null, true, 3, 3.5, "w\u00f6rd", NaN]}}');
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_system_attributes" VALUES(1,1,'x','[0]');
INSERT INTO "trial_system_attributes" VALUES(2,2,'x','[1]');
INSERT INTO "trial_system_attributes" VALUES(3,3,'x','[2]');
INSERT INTO "trial_system_attributes" VALUES(4,4,'x','[3]');
INSERT INTO "trial_system_attributes" VALUES(5,5,'x','[4]');
INSERT INTO "trial_system_attributes" VALUES(6,6,'x','[5]');
INSERT INTO "trial_system_attributes" VALUES(7,8,'fixed_params','{"lr": 0.01}');
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_user_attributes" VALUES(1,1,'k','0');
INSERT INTO "trial_user_attributes" VALUES(2,2,'k','1');
INSERT INTO "trial_user_attributes" VALUES(3,3,'k','2');
INSERT INTO "trial_user_attributes" VALUES(4,4,'k','3');
INSERT INTO "trial_user_attributes" VALUES(5,5,'k','4');
INSERT INTO "trial_user_attributes" VALUES(6,6,'k','5');
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	value FLOAT, 
	value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, objective), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,0.75,'FINITE');
INSERT INTO "trial_values" VALUES(2,2,0,0.25,'FINITE');
INSERT INTO "trial_values" VALUES(3,4,0,NULL,'INF_POS');
INSERT INTO "trial_values" VALUES(4,5,0,0.875,'FINITE');
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	number INTEGER, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "trials" VALUES(1,0,2,'COMPLETE','2026-11-21 09:29:14.745254','2026-11-21 09:29:14.745254');
INSERT INTO "trials" VALUES(2,1,2,'PRUNED','2026-11-21 09:29:14.789237','2026-11-21 09:29:14.789237');
INSERT INTO "trials" VALUES(3,2,2,'FAIL','2026-11-21 09:29:14.821197','2026-11-21 09:29:14.821197');
INSERT INTO "trials" VALUES(4,3,2,'COMPLETE','2026-11-21 09:29:14.853091','2026-11-21 09:29:14.853091');
INSERT INTO "trials" VALUES(5,4,2,'COMPLETE','2026-11-21 09:29:14.881182','2026-11-21 09:29:14.881182');
INSERT INTO "trials" VALUES(6,5,2,'PRUNED','2026-11-21 09:29:14.905098','2026-11-21 09:29:14.905098');
INSERT INTO "trials" VALUES(7,6,2,'RUNNING','2026-11-21 09:29:14.945674',NULL);
INSERT INTO "trials" VALUES(8,7,2,'WAITING',NULL,NULL);
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,12,'5.0.0');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
COMMIT;
