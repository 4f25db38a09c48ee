import { networkPolicies } from '../client/resources.ts';
import { type PolicyRules, policyRules } from '../network/policy/network-policy.ts';
import type { ClusterView } from '../network/path/cluster-view.ts';
import { at, isRecord, isStringMap, textAt } from '../objects/json.ts';
import { matchesLabels } from '../objects/selectors/labels.ts';
import { joinKey, keyOf, type KubeObject, type ObjectKey } from '../objects/meta.ts';
import { isDNS1123Subdomain } from '../objects/names.ts';
import type { NetworkPolicy } from '../objects/types/networking.generated.ts';

/** NetworkPolicies as they shall be: what a plan of reach asks about. */

/** An edit of NetworkPolicies, read. */
export interface PolicyEdit {
  /** All policies of the cluster, as they would be. */
  readonly policies: readonly NetworkPolicy[];
  /** Those of policies that are changed or deleted. */
  readonly namespaces: readonly string[];
  /** Sentences about policies that are likely not what is meant. */
  readonly problems: readonly string[];
}

/**
 * @param objects new or changed policies.
 * @param deleted names, or namespaces and names.
 * @param namespace of what names none.
 * @throws {Error} for what the API server would refuse, and for a policy to delete that is not there.
 */
export function editPolicies(
  view: ClusterView,
  objects: readonly KubeObject[],
  deleted: readonly string[],
  namespace: string,
): PolicyEdit {
  const policies = new Map(view.objects.policies.map((policy) => [keyOf(policy), policy]));
  const changed = objects.map((object) => policyOf(object, namespace));
  const gone = deleted.map((name): ObjectKey => (name.includes('/') ? name : joinKey(namespace, name)));
  for (const key of gone) {
    if (!policies.delete(key)) throw new Error(`there is no NetworkPolicy ${key} to delete`);
  }
  for (const policy of changed) {
    const key = keyOf(policy);
    const { namespace: of = '' } = policy.metadata;
    if (!view.hasNamespace(of)) throw new Error(`NetworkPolicy ${key}: there is no namespace ${of}`);
    policies.set(key, policy);
  }
  return {
    policies: [...policies.values()],
    namespaces: [
      ...new Set([...changed.map(keyOf), ...gone].map((key) => key.split('/', 1)[0] ?? '')),
    ].toSorted(),
    problems: changed.flatMap((policy) => problemsOf(view, policyRules(policy))),
  };
}

function problemsOf(view: ClusterView, { key, namespace, podSelector, problems }: PolicyRules): string[] {
  const selects = view.objects.pods.some(
    ({ metadata }) => metadata.namespace === namespace && matchesLabels(podSelector, metadata.labels),
  );
  const all = selects ? problems : [...problems, 'spec.podSelector selects no Pod that is there'];
  return all.map((problem) => `NetworkPolicy ${key}: ${problem}`);
}

function policyOf(object: KubeObject, namespace: string): NetworkPolicy {
  const { apiVersion = '', kind = '' } = object;
  const { name = '' } = object.metadata;
  const of = textAt(object, 'metadata', 'namespace') || namespace;
  if (kind !== networkPolicies.kind || apiVersion !== 'networking.k8s.io/v1') {
    const what = kind === '' ? 'an object' : `${kind} ${name}`;
    throw new Error(
      `${what} (${apiVersion}) is no NetworkPolicy of networking.k8s.io/v1: of others, none can be planned`,
    );
  }
  const policy = `NetworkPolicy ${joinKey(of, name)}`;
  const spec = withoutNulls(at(object, 'spec') ?? {});
  const [wrong = wrongPart(spec, specShape, 'spec')] = isDNS1123Subdomain(name);
  if (wrong !== undefined) throw new Error(`${policy}: ${wrong}`);
  // As the API server adds it.
  const whole = isRecord(spec) ? { podSelector: {}, ...spec } : spec;
  const given = { apiVersion, kind, metadata: { name, namespace: of }, spec: whole };
  if (!networkPolicies.isObject(given)) throw new Error(`${policy}: it has no spec`);
  return given;
}

/** Null is as good as absent. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isRecord(value)) return value;
  const members = Object.entries(value).filter(([, each]) => each !== null && each !== undefined);
  return Object.fromEntries(members.map(([name, each]) => [name, withoutNulls(each)]));
}

/** What a value has to be; for a record also what is wrong between its members. */
type Shape =
  | { readonly is: (value: unknown) => boolean; readonly words: string }
  | { readonly items: Shape }
  | {
      readonly members: Readonly<Record<string, Shape>>;
      readonly wrong?: (value: Readonly<Record<string, unknown>>) => string | undefined;
    };

const text: Shape = { is: (value) => typeof value === 'string', words: 'a text' };
const oneOf = (...words: readonly string[]): Shape => ({
  is: (value) => words.some((word) => word === value),
  words: words.join(' or '),
});
const isPort = (value: unknown): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535;
const selector: Shape = {
  members: {
    matchLabels: { is: isStringMap, words: 'labels' },
    matchExpressions: {
      items: {
        members: {
          key: text,
          operator: oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'),
          values: { items: text },
        },
      },
    },
  },
};
const peer: Shape = {
  members: {
    ...{ podSelector: selector, namespaceSelector: selector },
    ipBlock: { members: { cidr: text, except: { items: text } } },
  },
  wrong: ({ ipBlock, ...selectors }) => {
    const count = Object.keys(selectors).length;
    if (ipBlock === undefined) return count > 0 ? undefined : 'it names no peer';
    return count === 0 ? undefined : 'an ipBlock goes with no selector';
  },
};
const port: Shape = {
  members: {
    protocol: oneOf('TCP', 'UDP', 'SCTP'),
    port: { is: (value) => isPort(value) || typeof value === 'string', words: 'a number to 65535 or a name' },
    endPort: { is: isPort, words: 'a number to 65535' },
  },
  wrong: ({ port: first, endPort }) =>
    endPort === undefined || (typeof first === 'number' && first <= Number(endPort))
      ? undefined
      : 'endPort needs a number as port that is not larger',
};
const specShape: Shape = {
  members: {
    podSelector: selector,
    policyTypes: { items: oneOf('Ingress', 'Egress') },
    ingress: { items: { members: { from: { items: peer }, ports: { items: port } } } },
    egress: { items: { members: { to: { items: peer }, ports: { items: port } } } },
  },
};

/** The first part that is not as it has to be, in words; undefined: there is none. */
function wrongPart(value: unknown, shape: Shape, path: string): string | undefined {
  if ('is' in shape) return shape.is(value) ? undefined : `${path}: it has to be ${shape.words}`;
  if ('items' in shape) {
    if (!Array.isArray(value)) return `${path}: it has to be a list`;
    return firstOf(value.entries(), ([index, item]) => wrongPart(item, shape.items, `${path}[${index}]`));
  }
  if (!isRecord(value)) return `${path}: it has to have members`;
  const { members } = shape;
  const wrong = firstOf(Object.entries(value), ([name, each]) => {
    const of = Object.hasOwn(members, name) ? members[name] : undefined;
    return of === undefined
      ? `unknown field ${JSON.stringify(`${path}.${name}`)}`
      : wrongPart(each, of, `${path}.${name}`);
  });
  const between = wrong ?? shape.wrong?.(value);
  return between === undefined || between === wrong ? wrong : `${path}: ${between}`;
}

function firstOf<T>(list: Iterable<T>, wrong: (item: T) => string | undefined): string | undefined {
  for (const item of list) {
    const found = wrong(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
