-- Made last when a file is built: sorting a million rows once is cheaper than a million insertions.
CREATE INDEX attempts_by_index    ON attempt_rows (first_index);
CREATE INDEX attempts_by_outcome  ON attempt_rows (outcome, first_index, duration);
CREATE INDEX attempts_by_revision ON attempt_rows (revision, first_index);
CREATE INDEX attempts_by_change   ON attempt_rows (change_id, first_index) WHERE change_id IS NOT NULL;
CREATE INDEX attempts_by_recipe   ON attempt_rows (recipe, first_index);
CREATE INDEX attempts_by_runtime  ON attempt_rows (runtime, first_index) WHERE runtime IS NOT NULL;
CREATE INDEX attempts_open        ON attempt_rows (first_index) WHERE state <> 'finished';
CREATE INDEX attempts_ended       ON attempt_rows (state, finished, outcome, detail, problem, change_id);
CREATE INDEX timeline_by_type     ON timeline_rows (type);
CREATE INDEX timeline_by_actor    ON timeline_rows (actor) WHERE actor IS NOT NULL;
CREATE INDEX custody_open         ON custody_rows (last_index) WHERE open = 1;
CREATE INDEX custody_by_index     ON custody_rows (last_index);
CREATE INDEX admissions_by_change ON admission_rows (change_id, idx);
CREATE INDEX qualifications_by    ON qualification_rows (runtime, idx);
