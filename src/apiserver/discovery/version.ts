import { methodNotAllowed, resourceNotFound } from '../../objects/status-errors.ts';
import type { Handler } from '../http/exchange.ts';
import { requireProducible } from '../http/negotiation.ts';

/** The version of Kubernetes whose answers this server gives. */
export const kubernetesVersion = { major: '1', minor: '36', patch: '0' } as const;

/** Fields of `/version` besides the Kubernetes version. */
export interface BuildInfo {
  /** Of servicenet, as in package.json. */
  readonly version: string;
  /** As Go names it: `linux/amd64`. */
  readonly platform: string;
}

/** Serves `/version` (apimachinery `version/types.go`). The build metadata names this program. */
export function versionHandler(build: BuildInfo): Handler {
  const { major, minor, patch } = kubernetesVersion;
  const body = {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion: `v${major}.${minor}.${patch}+servicenet.${build.version}`,
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
