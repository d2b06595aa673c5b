BEGIN TRANSACTION;
CREATE TABLE dse_askers (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            term BIGINT NOT NULL,
            driver BIGINT,
            sum BIGINT,
            PRIMARY KEY (study)
        );
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
INSERT INTO "dse_asks" VALUES(0,0,0,1,1,0,3.47025339000538224354e-01,'grey-box',0,1585258210);
INSERT INTO "dse_asks" VALUES(0,1,1,1,1,1,1.78440600211615674197e-03,'grey-box',0,49245345);
INSERT INTO "dse_asks" VALUES(0,2,2,1,1,2,2.62335099978372454643e-03,'grey-box',0,1911113781);
INSERT INTO "dse_asks" VALUES(0,3,3,1,1,3,2.7472449983179103583e-03,'grey-box',0,348986113);
INSERT INTO "dse_asks" VALUES(0,4,4,1,1,4,2.09192300098948180675e-03,'grey-box',0,2280159530);
INSERT INTO "dse_asks" VALUES(0,5,5,1,1,5,0.0018832729983842,'grey-box',0,4083986593);
INSERT INTO "dse_asks" VALUES(0,6,6,1,1,6,1.50894998199873953126e+00,'grey-box',0,3992109728);
INSERT INTO "dse_asks" VALUES(0,7,7,1,1,7,3.34510916199724306352e+00,'grey-box',0,3569242395);
INSERT INTO "dse_asks" VALUES(0,8,8,1,1,8,1.4828124560008291155e+00,'grey-box',0,3624235557);
INSERT INTO "dse_asks" VALUES(0,9,9,1,1,9,1.04191533100311062298e+00,'grey-box',0,2690272950);
CREATE TABLE dse_attempts (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            number BIGINT NOT NULL,
            attempt BIGINT NOT NULL,
            fault TEXT,
            cost_s DOUBLE PRECISION NOT NULL,
            sum BIGINT, begun_at DOUBLE PRECISION, finished_at DOUBLE PRECISION,
            PRIMARY KEY (study, seq)
        );
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
INSERT INTO "dse_drivers" VALUES(0,0,'machine-1',29437,'2714493','{"ax-platform":"1.3.1","botorch":"0.18.1","cpu":"AMD EPYC (2 threads)","dse-engine":"0.1.0","entry":"0632453d58604d099eb2648223e47cb7","evaluators":"84c39ff6bad02969","host":"vm","machine":"Linux-6.18.44-fc-v595-x86_64-with-glibc2.36","moocore":"0.3.2","numpy":"2.4.6","pymoo":"0.6.2","python":"3.11.7","torch":"2.13.0+cpu"}',6,1,1319150246);
CREATE TABLE dse_events (
            study BIGINT NOT NULL REFERENCES dse_studies (id) ON DELETE CASCADE,
            seq BIGINT NOT NULL,
            kind TEXT NOT NULL,
            text TEXT NOT NULL,
            told BIGINT NOT NULL, sum BIGINT,
            PRIMARY KEY (study, seq)
        );
CREATE TABLE dse_meta (version BIGINT NOT NULL);
INSERT INTO "dse_meta" VALUES(5);
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
            sum BIGINT, worker BIGINT,
            PRIMARY KEY (study, seq)
        );
CREATE TABLE dse_studies (
            id BIGINT PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            spec TEXT NOT NULL
        , sum BIGINT, trials BIGINT NOT NULL DEFAULT 0, finished BIGINT NOT NULL DEFAULT 0, events BIGINT NOT NULL DEFAULT 0, asks BIGINT NOT NULL DEFAULT 0, attempts BIGINT NOT NULL DEFAULT 0, reports BIGINT NOT NULL DEFAULT 0, drivers BIGINT NOT NULL DEFAULT 0, counted BIGINT);
INSERT INTO "dse_studies" VALUES(0,'training','{"path":"/data/training/training.yaml","texts":{"/data/training/training.yaml":"study: training\nquestion: Which plan trains fastest in the least memory?\nspace: space.yaml\nevaluators:\n  board:\n    use: command\n    run:\n      - python3\n      - -c\n      - |\n        import json, sys\n        plan = json.load(sys.stdin)\n        if plan[\"dp\"] == 16 and plan[\"format\"] == \"fp8\":\n            sys.exit(\"out of memory\")\n        speed = {\"bf16\": 1.0, \"fp8\": 1.7, \"mxfp4\": 2.3}[plan[\"format\"]]\n        loss = {\"bf16\": 0.0, \"fp8\": 0.02, \"mxfp4\": 0.07}[plan[\"format\"]] + (plan.get(\"block\") or 0) / 200\n        time = (1 + 0.2 * (plan[\"tp\"] - 1)) / speed / plan[\"dp\"] ** 0.5 + 0.01 * plan[\"micro\"]\n        sys.stdout.write(json.dumps({\"time\": time, \"loss\": loss}))\n    metrics: {time: s, loss: ''''}\n  cost: {use: expression, metrics: {memory: {formula: ''micro * 1 GiB + 64 GiB / tp'', unit: GiB}}}\nobjectives: [{minimize: board.time}, {minimize: cost.memory}]\nconstraints: [board.loss <= 0.2]\noptimizer: grey-box\nbudget: {measurements: 10}\nretries: {raised: 1}\nseed: 20261123\n","/data/training/space.yaml":"space: plan\nparameters:\n  tp:     {ordinal: [1, 2, 4, 8]}\n  dp:     {ordinal: [1, 2, 4, 8, 16]}\n  micro:  {integer: [1, 8]}\n  format: {choice: [bf16, fp8, mxfp4]}\n  block:  {ordinal: [16, 32], when: format == ''mxfp4''}\nconstraints:\n  - tp * dp <= 32\n"},"identity":{"space":{"parameters":{"tp":{"kind":"ordinal","unit":"","values":[1,2,4,8],"scale":"linear"},"dp":{"kind":"ordinal","unit":"","values":[1,2,4,8,16],"scale":"linear"},"micro":{"kind":"integer","unit":"","low":1,"high":8,"step":1,"scale":"linear"},"format":{"kind":"choice","unit":"","values":["bf16","fp8","mxfp4"]},"block":{"kind":"ordinal","unit":"","values":[16,32],"scale":"linear"}},"conditions":{"block":{"hash":"68d9e71547220c55","text":"format == ''mxfp4''"}},"rules":{"18970b5c223cc2e9":"tp * dp <= 32"}},"order of parameters":["tp","dp","micro","format","block"],"evaluators":{"cost":{"use":"expression","options":{"metrics":{"memory":{"formula":"micro * 1 GiB + 64 GiB / tp","unit":"GiB"}}},"version":"1","reads":{"micro":"micro","tp":"tp"}},"board":{"use":"command","options":{"run":["python3","-c","import json, sys\nplan = json.load(sys.stdin)\nif plan[\"dp\"] == 16 and plan[\"format\"] == \"fp8\":\n    sys.exit(\"out of memory\")\nspeed = {\"bf16\": 1.0, \"fp8\": 1.7, \"mxfp4\": 2.3}[plan[\"format\"]]\nloss = {\"bf16\": 0.0, \"fp8\": 0.02, \"mxfp4\": 0.07}[plan[\"format\"]] + (plan.get(\"block\") or 0) / 200\ntime = (1 + 0.2 * (plan[\"tp\"] - 1)) / speed / plan[\"dp\"] ** 0.5 + 0.01 * plan[\"micro\"]\nsys.stdout.write(json.dumps({\"time\": time, \"loss\": loss}))\n"],"metrics":{"time":"s","loss":""}},"version":"1","reads":{"block":"block","dp":"dp","format":"format","micro":"micro","tp":"tp"}}},"objectives":["minimize board.time [s]","minimize cost.memory [GiB]"],"constraints":["board.loss <= 0.2"],"reference":[],"baselines":[],"optimizer":{"use":"grey-box"},"seed":20261123},"question":"Which plan trains fastest in the least memory?","provenance":{"python":"3.11.7","machine":"Linux-6.18.44-fc-v595-x86_64-with-glibc2.36","dse-engine":"0.1.0","numpy":"2.4.6","torch":"2.13.0+cpu","botorch":"0.18.1","ax-platform":"1.3.1","pymoo":"0.6.2","moocore":"0.3.2"}}',289295268,10,10,0,10,0,0,1,2595208370);
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
            finished_seq BIGINT, attempts BIGINT NOT NULL DEFAULT 0, worker BIGINT, sum BIGINT, asked_at DOUBLE PRECISION, begun_at DOUBLE PRECISION, finished_at DOUBLE PRECISION,
            PRIMARY KEY (study, number)
        );
INSERT INTO "dse_trials" VALUES(0,0,'{"dp":1,"format":"fp8","micro":6,"tp":4}','69b6a1bdc42d5f8e',0,'done','{"board.loss":0.02,"board.time":1.0011764705882353,"cost.memory":22.0}','{}',NULL,7.73945957900286884978e+00,1,0,0,0,3264572711,1.79544211813086628916e+09,1.79544212685693311691e+09,1.79544213459742140774e+09);
INSERT INTO "dse_trials" VALUES(0,1,'{"block":16,"dp":8,"format":"mxfp4","micro":1,"tp":1}','55e8ddc7e1ab3e30',1,'done','{"board.loss":0.15000000000000002,"board.time":0.16371886547533643,"cost.memory":65.0}','{}',NULL,3.46799021599872503429e+00,1,1,0,0,344688213,1.79544213478673076629e+09,1.79544213488463664054e+09,1.79544213835351276395e+09);
INSERT INTO "dse_trials" VALUES(0,2,'{"dp":4,"format":"bf16","micro":7,"tp":1}','af5ff4baad418e01',2,'done','{"board.loss":0.0,"board.time":0.5700000000000001,"cost.memory":71.0}','{}',NULL,4.43976993700198363512e+00,1,2,0,0,2078847854,1.79544213856779193878e+09,1.79544213877693986896e+09,1.7954421432178924084e+09);
INSERT INTO "dse_trials" VALUES(0,3,'{"block":32,"dp":8,"format":"mxfp4","micro":4,"tp":4}','10974382179ba7b5',3,'done','{"board.loss":0.23,"board.time":0.2859501847605383,"cost.memory":20.0}','{}',NULL,4.06085266800437238998e+00,1,3,0,0,750084687,1.795442143471796751e+09,1.79544214361560130121e+09,1.79544214767762494089e+09);
INSERT INTO "dse_trials" VALUES(0,4,'{"block":32,"dp":2,"format":"mxfp4","micro":2,"tp":8}','1a4b24e48356d227',4,'done','{"board.loss":0.23,"board.time":0.757850554281615,"cost.memory":10.0}','{}',NULL,2.88389423700209590606e+00,1,4,0,0,377545721,1.79544214779131627085e+09,1.79544214791367840768e+09,1.79544215079835367205e+09);
INSERT INTO "dse_trials" VALUES(0,5,'{"dp":8,"format":"bf16","micro":5,"tp":1}','9f554d7c158bdb8a',5,'done','{"board.loss":0.0,"board.time":0.4035533905932737,"cost.memory":69.0}','{}',NULL,4.13177915300184395164e+00,1,5,0,0,1663882389,1.79544215097974634172e+09,1.79544215109295535086e+09,1.79544215522555160521e+09);
INSERT INTO "dse_trials" VALUES(0,6,'{"dp":8,"format":"bf16","micro":3,"tp":4}','305a897d76478118',6,'done','{"board.loss":0.0,"board.time":0.595685424949238,"cost.memory":19.0}','{}',NULL,4.02783413699944503605e+00,1,6,0,0,3866744838,1.79544215693793463711e+09,1.79544215704489088054e+09,1.79544216107346677781e+09);
INSERT INTO "dse_trials" VALUES(0,7,'{"block":16,"dp":16,"format":"mxfp4","micro":4,"tp":2}','fa04ac6fe60e8d7f',7,'done','{"board.loss":0.15000000000000002,"board.time":0.17043478260869566,"cost.memory":36.0}','{}',NULL,4.03170827800204278901e+00,1,7,0,0,1916144387,1.79544216456814885139e+09,1.79544216479296874994e+09,1.79544216882557225228e+09);
INSERT INTO "dse_trials" VALUES(0,8,'{"block":16,"dp":8,"format":"mxfp4","micro":1,"tp":4}','34ccea89bd452b03',8,'done','{"board.loss":0.15000000000000002,"board.time":0.25595018476053827,"cost.memory":17.0}','{}',NULL,4.45798360900153056718e+00,1,8,0,0,900804582,1.79544217051104331014e+09,1.79544217066257071491e+09,1.79544217512148189539e+09);
INSERT INTO "dse_trials" VALUES(0,9,'{"block":16,"dp":16,"format":"mxfp4","micro":1,"tp":2}','b469675e3006e252',9,'done','{"board.loss":0.15000000000000002,"board.time":0.14043478260869566,"cost.memory":33.0}','{}',NULL,3.71090266100145527161e+00,1,9,0,0,3368501229,1.79544217637088489528e+09,1.7954421765218522549e+09,1.7954421802335159778e+09);
CREATE UNIQUE INDEX dse_trials_ended ON dse_trials (study, finished_seq);
CREATE INDEX dse_trials_open ON dse_trials (study, worker, number)
        WHERE finished_seq IS NULL
        ;
CREATE INDEX dse_drivers_present ON dse_drivers (study) WHERE "left" = 0
        ;
COMMIT;
