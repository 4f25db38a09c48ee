import { methodNotAllowed, resourceNotFound } from '../../objects/status-errors.ts';
import type { Handler } from '../http/exchange.ts';
import { requireProducible } from '../http/negotiation.ts';

/** The version of Kubernetes whose API this server implements. */
export const kubernetesVersion = { major: '1', minor: '36', patch: '0' } as const;

/** Fields of `/version` besides the Kubernetes version. */
export interface BuildInfo {
  /** The version of servicenet, as in package.json. */
  readonly version: string;
  /** With Go's names: `linux/amd64`. */
  readonly platform: string;
}

/** Serves `/version` (apimachinery `version/types.go`). The build metadata of the version names servicenet. */
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
