/** Objects as people name them in commands, as kubectl does: `web`, `shop/web`, `pod/shop/web`, `deploy/web`. */

/** The kinds of objects that make Pods. */
export const workloadKinds = [
  'Deployment',
  'ReplicaSet',
  'ReplicationController',
  'StatefulSet',
  'DaemonSet',
  'Job',
] as const;

export type WorkloadKind = (typeof workloadKinds)[number];

export type ReferenceKind = 'Pod' | 'Service' | 'Node' | WorkloadKind;

/** Short names of kubectl; the singular and the plural are known as well. */
export const shortNames: Readonly<Record<ReferenceKind, string>> = {
  Pod: 'po',
  Service: 'svc',
  Node: 'no',
  Deployment: 'deploy',
  ReplicaSet: 'rs',
  ReplicationController: 'rc',
  StatefulSet: 'sts',
  DaemonSet: 'ds',
  Job: 'job',
};

const kinds: ReadonlyMap<string, ReferenceKind> = new Map(
  (['Pod', 'Service', 'Node', ...workloadKinds] as const).flatMap((kind) => {
    const singular = kind.toLowerCase();
    return [shortNames[kind], singular, `${singular}s`].map((word) => [word, kind] as const);
  }),
);

/** An object by its kind, namespace and name. */
export interface Reference {
  /** Undefined: none was given. */
  readonly kind: ReferenceKind | undefined;
  /** Of a Node, without meaning. */
  readonly namespace: string;
  readonly name: string;
}

/**
 * Reads `NAME`, `NAMESPACE/NAME`, `KIND/NAME` or `KIND/NAMESPACE/NAME`; a kind may have its group (`deployment.apps`). A
 * namespace that is called as a kind has to stand behind one.
 *
 * @param namespace where none is given.
 * @returns undefined for anything else, and for a kind that is not known.
 */
export function parseReference(text: string, namespace: string): Reference | undefined {
  const parts = text.split('/');
  if (parts.includes('') || parts.length > 3) return undefined;
  const kind = parts.length === 1 ? undefined : kinds.get((parts[0] ?? '').toLowerCase().split('.')[0] ?? '');
  const [first = '', second] = kind === undefined ? parts : parts.slice(1);
  if ((kind === undefined && parts.length === 3) || (kind === 'Node' && second !== undefined))
    return undefined;
  return second === undefined ? { kind, namespace, name: first } : { kind, namespace: first, name: second };
}

/** True for the kinds of objects that make Pods. */
export function isWorkload(kind: ReferenceKind | undefined): kind is WorkloadKind {
  return workloadKinds.some((each) => each === kind);
}
