-- The place of memories, found by a condition that every engine has. One project of an invitation's recipient is
-- delivered to them once: the store saw to that, and now the schema does.
DROP INDEX partition_place;
CREATE INDEX partition_place ON partition (collection_id, coalesce(project_id, 0));

UPDATE project_invitation SET recipient_id = NULL WHERE recipient_id IS NOT NULL AND EXISTS (SELECT 1 FROM project_invitation o
	WHERE o.project_id = project_invitation.project_id AND o.recipient_id = project_invitation.recipient_id AND o.id > project_invitation.id);
CREATE UNIQUE INDEX project_invitation_delivered ON project_invitation (project_id, recipient_id) WHERE recipient_id IS NOT NULL;
