-- passage.vector may have 16 bits a number, told apart by its length (internal/vectorform). No row changes; programs
-- that read float32 alone must not open the database any longer.
SELECT 1;
