module github.com/souvenir-ai/souvenir/e2e/migrate/chromem

go 1.26

require github.com/philippgille/chromem-go v0.7.0 // indirect
