import { type ApiRequest, type Handler, type Reply, replyNotFound } from '../http/exchange.ts';
import { errorMessage, methodNotAllowed, resourceNotFound } from '../../objects/status.ts';
import { fullVersion, kubernetesVersion } from '../../objects/kubernetes-version.ts';
import type { JsonWebKey } from 'node:crypto';
import { requireProducible } from '../http/negotiation.ts';
import type { DiscoveredResources } from './discovered-resource.ts';
import { groupResources, type RemoteGroupVersion } from './documents.ts';

/** What the server says of itself at paths without resources (apiserver `server/routes`, `server/healthz`). */

type HealthPath = 'healthz' | 'livez' | 'readyz';

/** One named check; throws when it fails. */
export interface ServerCheck {
  readonly name: string;
  /** The paths that run it. */
  readonly on: readonly HealthPath[];
  check(): void;
}

/** The results of checks, for `/metrics/slis` (component-base `metrics/prometheus/slis`). */
export class HealthCheckResults {
  readonly #results = new Map<string, CheckResult>();

  /** Runs a check, and records the result. @param type the path that runs it. @returns why it fails, if it does. */
  run(check: ServerCheck, type: string): string | undefined {
    const failure = failureOf(check);
    const key = `${type} ${check.name}`;
    let result = this.#results.get(key);
    if (result === undefined) {
      this.#results.set(key, (result = { name: check.name, type, isHealthy: true, success: 0, error: 0 }));
    }
    result.isHealthy = failure === undefined;
    if (result.isHealthy) result.success++;
    else result.error++;
    return failure;
  }

  /** The results so far, in the text format of Prometheus. */
  async text(): Promise<string> {
    const { Counter, Gauge, Registry } = await import('prom-client');
    const registry = new Registry();
    const registers = [registry];
    const last = new Gauge({
      name: 'kubernetes_healthcheck',
      help: 'Whether a check succeeded when it ran last.',
      labelNames: ['name', 'type'],
      registers,
    });
    const total = new Counter({
      name: 'kubernetes_healthchecks_total',
      help: 'Checks that ran, by result.',
      labelNames: ['name', 'type', 'status'],
      registers,
    });
    for (const { name, type, isHealthy, success, error } of this.#results.values()) {
      last.set({ name, type }, isHealthy ? 1 : 0);
      total.inc({ name, type, status: 'success' }, success);
      if (error > 0) total.inc({ name, type, status: 'error' }, error);
    }
    return registry.metrics();
  }
}

interface CheckResult {
  readonly name: string;
  readonly type: string;
  isHealthy: boolean;
  success: number;
  error: number;
}

/** The paths of `checks`, for the list at `/`. */
export function healthPaths(checks: readonly ServerCheck[]): readonly string[] {
  return (['healthz', 'livez', 'readyz'] as const).flatMap((path) => [
    `/${path}`,
    ...checks.filter(({ on }) => on.includes(path)).map(({ name }) => `/${path}/${name}`),
  ]);
}

const headers = { 'X-Content-Type-Options': 'nosniff' };
const text = 'text/plain; charset=utf-8';

/**
 * Serves `/healthz`, `/livez`, `/readyz` with `?verbose` and `?exclude=<name>`, and one path per check, whatever the
 * method (apiserver `server/healthz/healthz.go`). The reason of a failure is shown on the check's own path only.
 */
export function healthHandler(checks: readonly ServerCheck[], results: HealthCheckResults): Handler {
  return async (request, reply) => {
    await Promise.resolve();
    const { path } = request.info;
    const [, healthPath = ''] = path.split('/', 2);
    const own = checks.filter(({ on }) => on.some((each) => each === healthPath));
    if (path === `/${healthPath}`) {
      sendAll(healthPath, own, results, request, reply);
      return;
    }
    const check = own.find(({ name }) => path === `/${healthPath}/${name}`);
    if (check === undefined) {
      replyNotFound(reply);
      return;
    }
    const failure = results.run(check, healthPath);
    if (failure === undefined) reply.send(200, text, 'ok', headers);
    else reply.send(500, text, `internal server error: ${failure}\n`, headers);
  };
}

function sendAll(
  path: string,
  checks: readonly ServerCheck[],
  results: HealthCheckResults,
  { query }: ApiRequest,
  reply: Reply,
): void {
  const excluded = new Set(query.getAll('exclude'));
  const lines: string[] = [];
  let failed = false;
  for (const check of checks) {
    if (excluded.delete(check.name)) {
      lines.push(`[+]${check.name} excluded: ok`);
    } else if (results.run(check, path) === undefined) {
      lines.push(`[+]${check.name} ok`);
    } else {
      failed = true;
      lines.push(`[-]${check.name} failed: reason withheld`);
    }
  }
  if (excluded.size > 0) {
    const names = [...excluded].sort().map((name) => JSON.stringify(name));
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names.join(', ')}`);
  }
  if (failed) {
    reply.send(500, text, `${lines.join('\n')}\n${path} check failed\n`, headers);
  } else if (query.has('verbose')) {
    reply.send(200, text, `${lines.join('\n')}\n${path} check passed\n`, headers);
  } else {
    reply.send(200, text, 'ok', headers);
  }
}

function failureOf(check: ServerCheck): string | undefined {
  try {
    check.check();
    return undefined;
  } catch (error) {
    return errorMessage(error);
  }
}

/** Serves `/metrics` and paths below it in the text format of Prometheus. @param pages by path. */
export function metricsHandler(pages: ReadonlyMap<string, () => Promise<string>>): Handler {
  return async ({ info }, reply) => {
    const collect = pages.get(info.path);
    if (collect === undefined) replyNotFound(reply);
    else reply.send(200, 'text/plain; version=0.0.4; charset=utf-8', await collect());
  };
}

/** The paths of OpenID Connect discovery for tokens of ServiceAccounts. */
export const openIdPaths = {
  configuration: '/.well-known/openid-configuration',
  keys: '/openid/v1/jwks',
} as const;

/** The options of {@link openIdProvider}. */
export interface OpenIdProviderOptions {
  /** The `iss` of the tokens. */
  readonly issuer: string;
  /** Public keys, each with `kid`, `alg` and `use`. */
  readonly keys: readonly JsonWebKey[];
  /** `host:port` as clients reach the server that do not know it by the name in `issuer`. */
  readonly address: () => string;
}

/**
 * Serves the OpenID configuration and the keys, with which relying parties verify ServiceAccount tokens on their own
 * (`pkg/routes/openidmetadata.go`).
 */
export function openIdProvider({ issuer, keys, address }: OpenIdProviderOptions): Handler {
  const issuerHost = URL.canParse(issuer) ? new URL(issuer).host : undefined;
  const documents: Readonly<Record<string, (host: string) => readonly [mediaType: string, body: unknown]>> = {
    [openIdPaths.configuration]: (host) => [
      'application/json',
      {
        issuer,
        // The address may be the loopback of the machine: a Pod, which asks the issuer, does not reach it.
        jwks_uri: `https://${host === issuerHost ? host : address()}${openIdPaths.keys}`,
        response_types_supported: ['id_token'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: [...new Set(keys.map(({ alg }) => alg))],
      },
    ],
    [openIdPaths.keys]: () => ['application/jwk-set+json', { keys }],
  };
  return async ({ method, headers, info: { path } }, reply) => {
    await Promise.resolve();
    const endpoint = Object.values(openIdPaths).find((each) => path === each || path.startsWith(`${each}/`));
    if (endpoint === undefined) {
      replyNotFound(reply);
      return;
    }
    const document = documents[path.endsWith('/') ? path.slice(0, -1) : path];
    if (document === undefined) throw resourceNotFound();
    if (method !== 'GET') throw methodNotAllowed(['GET']);
    const [mediaType, body] = document(headers.host ?? '');
    reply.sendAsIs(200, mediaType, JSON.stringify(body), { 'cache-control': 'public, max-age=3600' });
  };
}

/** Fields of `/version` besides the Kubernetes version. */
export interface BuildInfo {
  /** The version of servicenet, as in package.json. */
  readonly version: string;
  /** With Go's names: `linux/amd64`. */
  readonly platform: string;
}

/** Serves `/version` (apimachinery `version/types.go`). The build metadata of the version names servicenet. */
export function versionHandler(build: BuildInfo): Handler {
  const { major, minor } = kubernetesVersion;
  const body = {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion: `${fullVersion}+servicenet.${build.version}`,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: 'none',
    compiler: 'gc',
    platform: build.platform,
  };
  return async ({ info, method, headers }, reply) => {
    await Promise.resolve();
    if (info.path !== '/version' && info.path !== '/version/') throw resourceNotFound();
    if (method !== 'GET') throw methodNotAllowed(['GET']);
    requireProducible(headers.accept, ['application/json']);
    reply.send(200, 'application/json', JSON.stringify(body, null, 2));
  };
}

/** Serves `/`, the list of paths (apiserver `server/routes/index.go`). */
export function pathsHandler(
  served: DiscoveredResources,
  remoteVersions: () => readonly RemoteGroupVersion[],
  more: readonly string[],
): Handler {
  return async (_request, reply) => {
    await Promise.resolve();
    const paths = new Set<string>(['/api', '/apis', ...more]);
    for (const group of groupResources(served(), remoteVersions()).values()) {
      const root = group.name === '' ? '/api' : `/apis/${group.name}`;
      paths.add(root);
      for (const version of group.versions.keys()) paths.add(`${root}/${version}`);
    }
    reply.send(200, 'application/json', JSON.stringify({ paths: [...paths].sort() }, null, 2));
  };
}
