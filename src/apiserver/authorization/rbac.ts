import type { PolicyRule, ClusterRole } from '../../objects/types/rbac.generated.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { serviceAccountUserName } from '../authentication/users.ts';
import { listPrefix, objectKey, type Storage } from '../storage/storage.ts';
import { type AccessAttributes, type Authorizer, withSubresource } from './authorizer.ts';
import { listAt, textAt, textsAt, jsonEqual } from '../../objects/json.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';
import { compileLabelSelector, matchesLabels } from '../../objects/selectors/labels.ts';
import { StatusError } from '../../objects/status.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { updateObject } from '../rest/update.ts';
import { rbacGroup } from '../../registry/rbac/roles.ts';

/** A rule of a Role or ClusterRole, with empty lists for those that are not set. */
export type WholeRule = { readonly [Member in keyof PolicyRule]-?: readonly string[] };

interface Subject {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string;
}

interface Binding {
  readonly name: string;
  /** "" for a ClusterRoleBinding. */
  readonly namespace: string;
  readonly subjects: readonly Subject[];
  readonly roleKind: string;
  readonly roleName: string;
}

/** A rule that a user holds, with the binding and the subject that grant it. */
interface HeldRule {
  readonly rule: WholeRule;
  readonly binding: Binding;
  readonly subject: Subject;
}

const superusers = 'system:masters';

/**
 * `--authorization-mode=RBAC`: Roles, ClusterRoles and their bindings as they are stored
 * (`plugin/pkg/auth/authorizer/rbac`). Members of system:masters may do everything, as in kube-apiserver.
 */
export class RbacAuthorizer implements Authorizer {
  readonly #storage: Storage;
  /** Bindings by namespace, "" for ClusterRoleBindings; dropped when a binding changes. */
  readonly #bindings = new Map<string, readonly Binding[]>();
  /** Rules by stored role. A stored object is replaced, never changed. */
  readonly #rules = new WeakMap<KubeObject, readonly WholeRule[]>();

  constructor(storage: Storage) {
    this.#storage = storage;
    for (const plural of ['rolebindings', 'clusterrolebindings']) {
      storage.watch(listPrefix(rbacGroup, plural), storage.revision, () => this.#bindings.clear());
    }
  }

  authorize(user: UserInfo, attributes: AccessAttributes): { allowed: boolean; reason: string } {
    if (isSuperuser(user)) return { allowed: true, reason: '' };
    const missing: string[] = [];
    const namespace = attributes.resource?.namespace ?? '';
    for (const { rule, binding, subject } of this.#held(user, namespace, missing)) {
      if (allows(rule, attributes))
        return { allowed: true, reason: `RBAC: allowed by ${describeGrant(binding, subject)}` };
    }
    if (missing.length === 0) return { allowed: false, reason: '' };
    const [first = ''] = missing;
    return { allowed: false, reason: `RBAC: ${missing.length === 1 ? first : `[${missing.join(', ')}]`}` };
  }

  /** All rules that a user has in a namespace ("" for the cluster scope). */
  rulesOf(user: UserInfo, namespace: string): WholeRule[] {
    return [...this.#held(user, namespace, [])].map(({ rule }) => rule);
  }

  /** The rules of a role; undefined when it does not exist. @param namespace that of a Role. */
  rulesOfRole(kind: string, name: string, namespace: string): readonly WholeRule[] | undefined {
    const key =
      kind === 'ClusterRole'
        ? objectKey(rbacGroup, 'clusterroles', '', name)
        : objectKey(rbacGroup, 'roles', namespace, name);
    const role = this.#storage.get(key)?.object;
    if (role === undefined) return undefined;
    let rules = this.#rules.get(role);
    if (rules === undefined) this.#rules.set(role, (rules = policyRulesOf(role)));
    return rules;
  }

  /** @param missing receives a text for every role that a binding refers to but that does not exist. */
  *#held(user: UserInfo, namespace: string, missing: string[]): Generator<HeldRule> {
    for (const scope of namespace === '' ? [''] : ['', namespace]) {
      for (const binding of this.#bindingsOf(scope)) {
        const subject = binding.subjects.find((candidate) => isSubject(candidate, user, scope));
        if (subject === undefined) continue;
        const rules = this.rulesOfRole(binding.roleKind, binding.roleName, scope);
        if (rules === undefined) missing.push(roleNotFound(binding));
        for (const rule of rules ?? []) yield { rule, binding, subject };
      }
    }
  }

  #bindingsOf(namespace: string): readonly Binding[] {
    let bindings = this.#bindings.get(namespace);
    if (bindings === undefined) {
      const prefix =
        namespace === ''
          ? listPrefix(rbacGroup, 'clusterrolebindings')
          : listPrefix(rbacGroup, 'rolebindings', namespace);
      bindings = this.#storage.list(prefix).items.map(({ object }) => bindingOf(object));
      // Requests can name any number of namespaces that do not exist: only those with bindings are cached.
      if (bindings.length > 0) this.#bindings.set(namespace, bindings);
    }
    return bindings;
  }
}

/** True for members of system:masters, who may do everything (`user.SystemPrivilegedGroup`). */
export function isSuperuser(user: UserInfo): boolean {
  return user.groups.includes(superusers);
}

function roleNotFound({ roleKind, roleName }: Binding): string {
  return `${roleKind.toLowerCase()}.${rbacGroup} ${JSON.stringify(roleName)} not found`;
}

/** kube-apiserver's text for a binding and its role, with the namespace after the name. */
function describeGrant({ name, namespace, roleKind, roleName }: Binding, subject: Subject): string {
  const binding = namespace === '' ? `ClusterRoleBinding "${name}"` : `RoleBinding "${name}/${namespace}"`;
  const accountNamespace = subject.namespace === '' ? namespace : subject.namespace;
  const subjectName =
    subject.kind === 'ServiceAccount' ? `${subject.name}/${accountNamespace}` : subject.name;
  return `${binding} of ${roleKind} "${roleName}" to ${subject.kind} "${subjectName}"`;
}

function bindingOf(object: KubeObject): Binding {
  return {
    name: object.metadata.name ?? '',
    namespace: object.metadata.namespace ?? '',
    roleKind: textAt(object, 'roleRef', 'kind'),
    roleName: textAt(object, 'roleRef', 'name'),
    subjects: listAt(object, 'subjects').map((subject) => ({
      kind: textAt(subject, 'kind'),
      name: textAt(subject, 'name'),
      namespace: textAt(subject, 'namespace'),
    })),
  };
}

/** The rules of a Role or ClusterRole. */
export function policyRulesOf(object: KubeObject): WholeRule[] {
  return listAt(object, 'rules').map((rule) => ({
    verbs: textsAt(rule, 'verbs'),
    apiGroups: textsAt(rule, 'apiGroups'),
    resources: textsAt(rule, 'resources'),
    resourceNames: textsAt(rule, 'resourceNames'),
    nonResourceURLs: textsAt(rule, 'nonResourceURLs'),
  }));
}

function isSubject(subject: Subject, user: UserInfo, bindingNamespace: string): boolean {
  switch (subject.kind) {
    case 'User':
      return subject.name === user.name;
    case 'Group':
      return user.groups.includes(subject.name);
    case 'ServiceAccount': {
      const namespace = subject.namespace === '' ? bindingNamespace : subject.namespace;
      return namespace !== '' && user.name === serviceAccountUserName(namespace, subject.name);
    }
    default:
      return false;
  }
}

/** True when the rule covers the request (`rbac.RuleAllows`). */
function allows(rule: WholeRule, { verb, resource, path }: AccessAttributes): boolean {
  if (!matches(rule.verbs, verb)) return false;
  if (resource === undefined) return rule.nonResourceURLs.some((pattern) => matchesPath(pattern, path));
  const full = withSubresource(resource);
  const named = rule.resourceNames.length === 0 || rule.resourceNames.includes(resource.name);
  return (
    named &&
    matches(rule.apiGroups, resource.group) &&
    matchesResource(rule.resources, full, resource.subresource)
  );
}

function matches(allowed: readonly string[], value: string): boolean {
  return allowed.includes('*') || allowed.includes(value);
}

function matchesResource(allowed: readonly string[], full: string, subresource: string): boolean {
  if (matches(allowed, full)) return true;
  return subresource !== '' && allowed.includes(`*/${subresource}`);
}

function matchesPath(pattern: string, path: string): boolean {
  if (pattern === '*' || pattern === path) return true;
  return pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1));
}

const clusterRoles = listPrefix(rbacGroup, 'clusterroles');
const aggregationController: UserInfo = {
  name: 'system:serviceaccount:kube-system:clusterrole-aggregation-controller',
  uid: '',
  groups: ['system:masters'],
  extra: {},
};

/**
 * Sets the rules of ClusterRoles with an aggregationRule to those of the roles that it selects
 * (`pkg/controller/clusterroleaggregation`).
 */
export class RoleAggregation {
  readonly #core: ServerCore;
  #queue: Promise<void> = Promise.resolve();
  #isQueued = false;

  constructor(core: ServerCore) {
    this.#core = core;
  }

  /** Aggregates all roles now and after every change of one. */
  start(): void {
    const { storage } = this.#core;
    storage.watch(clusterRoles, storage.revision, () => this.#enqueue());
    this.#enqueue();
  }

  /** Resolves when nothing is left to do. */
  async settled(): Promise<void> {
    let last: Promise<void>;
    do {
      last = this.#queue;
      await last;
    } while (last !== this.#queue);
  }

  #enqueue(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.#queue = this.#queue
      .then(async () => {
        this.#isQueued = false;
        await this.#aggregate();
      })
      .catch((error: unknown) => this.#core.log.error({ err: error }, 'cannot aggregate ClusterRoles'));
  }

  async #aggregate(): Promise<void> {
    const roles = this.#core.storage
      .list(clusterRoles)
      .items.map(({ object }) => object)
      .filter(isRole);
    for (const role of roles) {
      const rules = aggregatedRules(role, roles);
      if (rules !== undefined && !jsonEqual(rules, role.rules ?? [])) await this.#store(role, rules);
    }
  }

  async #store({ metadata: { name = '' } }: ClusterRole, rules: PolicyRule[]): Promise<void> {
    const resource = this.#core.resources.find(rbacGroup, 'v1', 'clusterroles');
    if (resource === undefined) return;
    try {
      await updateObject(this.#core, resource, {
        namespace: '',
        name,
        subresource: '',
        user: aggregationController,
        dryRun: false,
        create: 'never',
        uid: '',
        warn: () => undefined,
        produce: (live) => ({
          ...structuredClone(live?.object ?? { metadata: { name } }),
          rules: structuredClone(rules),
        }),
        track: () => undefined,
      });
    } catch (error) {
      // Deleted, or refused by a webhook: the next change of a role leads to another attempt.
      if (!(error instanceof StatusError)) throw error;
      this.#core.log.warn({ key: name, reason: error.reason, err: error }, 'cannot aggregate a ClusterRole');
    }
  }
}

/** The rules of the selected roles without repeats, in the order of names; undefined without an aggregationRule. */
function aggregatedRules(
  { metadata, aggregationRule }: ClusterRole,
  roles: readonly ClusterRole[],
): PolicyRule[] | undefined {
  if (aggregationRule === undefined) return undefined;
  const rules: PolicyRule[] = [];
  for (const selector of (aggregationRule.clusterRoleSelectors ?? []).map(compileLabelSelector)) {
    for (const other of roles) {
      if (other.metadata.name === metadata.name || !matchesLabels(selector, other.metadata.labels)) continue;
      for (const rule of other.rules ?? []) {
        if (!rules.some((known) => jsonEqual(known, rule))) rules.push(rule);
      }
    }
  }
  return rules;
}

function isRole(object: KubeObject): object is ClusterRole {
  return object.kind === 'ClusterRole';
}
