# One static binary in an image without anything else: docker build -t ghcr.io/capstan-io/capstan:v0.1.0 .
FROM rust:1-alpine AS build
RUN apk add --no-cache build-base
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked -p capstan && cp target/dist/capstan /capstan

FROM gcr.io/distroless/static:nonroot
COPY --from=build /capstan /capstan
USER 65532:65532
ENTRYPOINT ["/capstan"]
