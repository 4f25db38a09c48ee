# servicenet in an image: node:24-slim, the bundled program and its production dependencies, nothing else of ours.
# docs/deploying.md says what is in it; test/package/image.ts keeps it whole where there is no Docker.
#
#   docker build --build-arg NODE_DIGEST=sha256:… -t servicenet:0.1.0 .
#
# NODE_DIGEST pins the base image; a release is built with one (docker buildx imagetools inspect node:24-slim).
ARG NODE_DIGEST=

FROM node:24-slim${NODE_DIGEST:+@${NODE_DIGEST}} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# The scripts are for a checkout: they start the program once, and its source is not here yet.
RUN npm ci --ignore-scripts
COPY hack/bundle.ts hack/build-page.ts ./hack/
COPY docs/troubleshooting.md ./docs/
COPY src ./src
# Without the types, which are for users of the package.
RUN node hack/bundle.ts && node hack/build-page.ts

FROM node:24-slim${NODE_DIGEST:+@${NODE_DIGEST}} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No production dependency has an install script that it needs. Half of their bytes are types and source maps, which
# only compilers and debuggers read: below node_modules, Node.js runs no TypeScript.
RUN npm ci --omit=dev --ignore-scripts \
 && find node_modules -type f \( -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -name '*.map' \) -delete

FROM node:24-slim${NODE_DIGEST:+@${NODE_DIGEST}}
LABEL org.opencontainers.image.title=servicenet \
      org.opencontainers.image.licenses=Apache-2.0
# npm and corepack are no part of the program, and are what scanners find most in.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
           /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-*
# What the node agent runs: nft, ip, conntrack.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends nftables iproute2 conntrack \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /src/dist ./dist
COPY package.json LICENSE ./
ENV NODE_ENV=production
USER 65532:65532
EXPOSE 8080
# For Docker; Kubernetes has probes of its own.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Limits V8's young generation: a quarter less memory with many objects (docs/performance.md).
ENTRYPOINT ["node", "--max-semi-space-size=4", "/app/dist/main.js"]
CMD ["controller"]
