module github.com/peltonq/pelton

go 1.26.0
