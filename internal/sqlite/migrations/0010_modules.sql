-- Which modules the memories of a project name is read from the index alone.
DROP INDEX memory_module;
CREATE INDEX memory_module ON memory (iif(json_valid(metadata), json_extract(metadata, '$.module_name'), NULL) COLLATE NOCASE, partition_id)
	WHERE iif(json_valid(metadata), json_extract(metadata, '$.module_name'), NULL) IS NOT NULL;
