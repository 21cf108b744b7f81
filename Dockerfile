# pelton as one static binary, run by an ordinary user. The base has a shell, because jobs of kind command may want one.
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/pelton ./cmd/pelton

FROM alpine:3.22
RUN apk add --no-cache ca-certificates tzdata && adduser -D -H -u 10001 pelton \
	&& install -d -m 700 -o 10001 -g 10001 /var/lib/pelton /var/lib/pelton/keys
COPY --from=build /out/pelton /usr/local/bin/pelton
USER 10001:10001
WORKDIR /tmp
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/pelton"]
CMD ["--help"]
