/** The users of a Pod's programs, as far as the namespaces of the network have such users (pkg/securitycontext). */
import { readFileSync } from 'node:fs';
import { ContainerError } from '../../controllers/kubelet/container-runtime.ts';
import type { Container, Pod } from '../../objects/types/core.generated.ts';
import { defaultCapabilities, type Identity } from './sandbox-words.ts';

/**
 * The user by a container's `securityContext` and that of its Pod.
 *
 * @returns undefined if they set none.
 * @throws {ContainerError} for root with `runAsNonRoot`.
 */
export function identityOf({ metadata, spec }: Pod, container: Container): Identity | undefined {
  const ofPod = spec.securityContext ?? {};
  const {
    runAsUser: user = ofPod.runAsUser,
    runAsGroup: group = ofPod.runAsGroup,
    runAsNonRoot,
  } = container.securityContext ?? {};
  if ((runAsNonRoot ?? ofPod.runAsNonRoot) === true && user === 0) {
    const where = `"${metadata.name ?? ''}_${metadata.namespace ?? ''}(${metadata.uid ?? ''})"`;
    const message = `container's runAsUser breaks non-root policy (pod: ${where}, container: ${container.name})`;
    throw new ContainerError('CreateContainerConfigError', message);
  }
  const { fsGroup, supplementalGroups = [] } = ofPod;
  const groups = [...new Set([...(fsGroup === undefined ? [] : [fsGroup]), ...supplementalGroups])];
  if (user === undefined && group === undefined && groups.length === 0) return undefined;
  return { user: user ?? 0, group: group ?? 0, groups };
}

/** Names of Linux' capabilities without `CAP_`, in lower case; `all`. */
export function capabilitiesOf({ securityContext }: Container): readonly string[] {
  const { privileged = false, capabilities } = securityContext ?? {};
  const named = (list: readonly string[] = []): string[] =>
    list.map((name) => name.toLowerCase().replace(/^cap_/, '')).filter((name) => /^[a-z_]+$/.test(name));
  const added = named(capabilities?.add);
  if (privileged || added.includes('all')) return ['all'];
  const dropped = new Set(named(capabilities?.drop));
  const kept = dropped.has('all') ? [] : defaultCapabilities.filter((name) => !dropped.has(name));
  return [...new Set([...kept, ...added])];
}

/** Whether the user namespace of this process has all these: that of an ordinary user has 0 alone. */
export function areMapped({ user, group, groups }: Identity): boolean {
  return isMapped('uid', user) && [group, ...groups].every((each) => isMapped('gid', each));
}

/** @param kind of the number: of users, or of groups. */
export function isMapped(kind: 'uid' | 'gid', number: number): boolean {
  return readFileSync(`/proc/self/${kind}_map`, 'utf8')
    .trim()
    .split('\n')
    .some((line) => {
      const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
      return number >= first && number < first + count;
    });
}
