-- Memories with the same content in one place are found by its length in bytes and its last 16 characters.
CREATE INDEX memory_content ON memory (partition_id, octet_length(content), substr(content, -16));
