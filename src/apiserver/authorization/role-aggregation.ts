import type { ClusterRole, PolicyRule } from '../../objects/types/rbac.generated.ts';
import { compileLabelSelector, matchesLabels } from '../../objects/labels/labels.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { StatusError } from '../../objects/status.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { updateObject } from '../rest/update.ts';
import { listPrefix } from '../storage/storage.ts';
import { rbacGroup } from '../../registry/rbac/roles.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

const prefix = listPrefix(rbacGroup, 'clusterroles');
const controller: UserInfo = {
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
    storage.watch(prefix, storage.revision, () => this.#enqueue());
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
      .list(prefix)
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
        user: controller,
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
