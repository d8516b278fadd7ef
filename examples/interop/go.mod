module profiles

go 1.21
