-- Calls are counted by client and by day from the index alone.
DROP INDEX activity_client;
CREATE INDEX activity_client ON activity (user_uid, client, started_at, namespace, credential, outcome, hits);
