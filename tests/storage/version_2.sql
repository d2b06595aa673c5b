CREATE TABLE dse_studies (
            id BIGINT PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            spec TEXT NOT NULL
        , sum BIGINT, trials BIGINT NOT NULL DEFAULT 0, finished BIGINT NOT NULL DEFAULT 0, events BIGINT NOT NULL DEFAULT 0, asks BIGINT NOT NULL DEFAULT 0, attempts BIGINT NOT NULL DEFAULT 0, reports BIGINT NOT NULL DEFAULT 0, drivers BIGINT NOT NULL DEFAULT 0, counted BIGINT);
INSERT INTO "dse_studies" VALUES(0,'edge: größer & ''besser''','{"seed":7,"identity":{"z":[1,2.5,null,true],"a":{"\u00df":"\n"}}}',3884521690,8,5,2,2,1,1,1,2603623549);
CREATE TABLE dse_asks (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            first BIGINT NOT NULL,
            count BIGINT NOT NULL,
            wanted BIGINT,
            told BIGINT NOT NULL,
            seconds DOUBLE PRECISION NOT NULL,
            "by" TEXT NOT NULL,
            worker BIGINT,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        );
INSERT INTO "dse_asks" VALUES(0,0,0,6,6,0,0.25,'nsga2',NULL,3208973103);
INSERT INTO "dse_asks" VALUES(0,1,6,2,3,0,0.5,'nsga2',0,2524893989);
CREATE TABLE dse_attempts (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            number BIGINT NOT NULL,
            attempt BIGINT NOT NULL,
            fault TEXT,
            cost_s DOUBLE PRECISION NOT NULL,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        );
INSERT INTO "dse_attempts" VALUES(0,0,7,0,'{"kind":"crashed","reason":"no UTF-8: \u0000 \udcff \ud83d\ude00"}',0.75,795819876);
CREATE TABLE dse_drivers (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            host TEXT NOT NULL,
            pid BIGINT NOT NULL,
            started TEXT NOT NULL,
            provenance TEXT NOT NULL,
            beat BIGINT NOT NULL,
            "left" BIGINT NOT NULL,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        );
INSERT INTO "dse_drivers" VALUES(0,0,'größer',1,'5','{"python":"3.11"}',0,0,4039929250);
CREATE TABLE dse_events (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            kind TEXT NOT NULL,
            text TEXT NOT NULL,
            told BIGINT NOT NULL, sum BIGINT,
            PRIMARY KEY (study, seq)
        );
INSERT INTO "dse_events" VALUES(0,0,'choice','"nsga2: gr\u00f6\u00dfer"',0,2618962862);
INSERT INTO "dse_events" VALUES(0,1,'proof','"all\nof them"',5,853829285);
CREATE TABLE dse_meta (version BIGINT NOT NULL);
INSERT INTO "dse_meta" VALUES(2);
CREATE TABLE dse_pages (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            content BLOB NOT NULL,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        );
CREATE TABLE dse_reports (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            number BIGINT NOT NULL,
            attempt BIGINT NOT NULL,
            step BIGINT NOT NULL,
            metrics TEXT NOT NULL,
            sum BIGINT,
            PRIMARY KEY (study, seq)
        );
INSERT INTO "dse_reports" VALUES(0,0,2,0,1,'{"q.accuracy":0.1}',3527518127);
CREATE TABLE dse_trials (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            number BIGINT NOT NULL,
            design TEXT NOT NULL,
            key TEXT NOT NULL,
            told BIGINT NOT NULL,
            state TEXT NOT NULL,
            metrics TEXT NOT NULL,
            spread TEXT NOT NULL,
            fault TEXT,
            cost_s DOUBLE PRECISION NOT NULL,
            measured BIGINT NOT NULL,
            finished_seq BIGINT, attempts BIGINT NOT NULL DEFAULT 0, worker BIGINT, sum BIGINT,
            PRIMARY KEY (study, number)
        );
INSERT INTO "dse_trials" VALUES(0,0,'{"clock":0.1,"format":"int8","on":false,"tp":1}','509be81ab55354bb',0,'failed','{}','{}','{"kind":"crashed","reason":"no UTF-8: \u0000 \udcff \ud83d\ude00"}',0.25,0,1,0,NULL,2513117904);
INSERT INTO "dse_trials" VALUES(0,1,'{"clock":0.2,"format":"int8","on":true,"tp":2}','7fda79445c51539f',0,'infeasible','{"chip.area":2.0}','{}','{"kind":"infeasible","reason":"it''s too big"}',0.0,0,2,0,NULL,3051734366);
INSERT INTO "dse_trials" VALUES(0,2,'{"clock":0.30000000000000004,"format":"int8","on":false,"tp":3}','a794ba037613e159',0,'done','{"chip.energy":5e-324,"q.accuracy":0.30000000000000004}','{"q.accuracy":0.001}',NULL,1.5,2,0,0,NULL,2270457534);
INSERT INTO "dse_trials" VALUES(0,3,'{"clock":0.4,"format":"int8","on":true,"tp":4}','437c786217b11f41',0,'pending','{}','{}',NULL,0.0,0,NULL,0,NULL,2213503588);
INSERT INTO "dse_trials" VALUES(0,4,'{"clock":0.5,"format":"int8","on":false,"tp":5}','d4246ce45aaa9092',0,'screened','{"chip.area":0.3333333333333333}','{}',NULL,0.0,1,4,0,NULL,2286341917);
INSERT INTO "dse_trials" VALUES(0,5,'{"clock":0.6000000000000001,"format":"int8","on":true,"tp":6}','2b4846ef31156d92',0,'outside','{"q.accuracy":0.5}','{}',NULL,0.0,0,3,0,NULL,722375387);
INSERT INTO "dse_trials" VALUES(0,6,'{"clock":0.7000000000000001,"format":"int8","on":false,"tp":7}','8f5d917b7a2d49e1',0,'running','{}','{}',NULL,0.0,0,NULL,0,0,1547965934);
INSERT INTO "dse_trials" VALUES(0,7,'{"clock":0.8,"format":"int8","on":true,"tp":8}','e9c698b6c075959d',0,'pending','{}','{}',NULL,0.0,0,NULL,1,NULL,2822562361);
CREATE UNIQUE INDEX dse_trials_ended ON dse_trials (study, finished_seq);
