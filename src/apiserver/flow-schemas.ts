import { isRecord } from '../objects/json.ts';
import type { FlowSchema, PolicyRulesWithSubjects, Subject } from '../objects/types/flowcontrol.generated.ts';
import { flowcontrolGroup } from '../registry/flowcontrol/prioritylevelconfiguration/bootstrap.ts';
import type { RequestInfo } from './http/exchange.ts';
import { listPrefix, objectKey, type Storage } from './storage/storage.ts';
import type { UserInfo } from '../registry/generic/strategy.ts';

/**
 * Finds the FlowSchema of requests, which their answers name (apiserver `server/filters/priority-and-fairness.go`).
 * It queues no requests: the server has limits of its own for those in flight.
 */
export class FlowSchemas {
  readonly #storage: Storage;
  /** In the order in which they are asked; undefined after a change. */
  #schemas: readonly ClassifyingSchema[] | undefined;

  constructor(storage: Storage) {
    this.#storage = storage;
    for (const plural of ['flowschemas', 'prioritylevelconfigurations'])
      storage.watch(
        listPrefix(flowcontrolGroup, plural),
        storage.revision,
        () => (this.#schemas = undefined),
      );
  }

  /**
   * The headers that name the schema of a request and its priority level, by their UIDs; none before the mandatory
   * schemas exist.
   */
  headersOf(user: UserInfo, info: RequestInfo): readonly (readonly [name: string, value: string])[] {
    this.#schemas ??= this.#list();
    return this.#schemas.find(({ rules }) => rules.some((rule) => covers(rule, user, info)))?.headers ?? [];
  }

  #list(): readonly ClassifyingSchema[] {
    const { items } = this.#storage.list(listPrefix(flowcontrolGroup, 'flowschemas'));
    return items
      .map(({ object }) => object)
      .filter(isFlowSchema)
      .sort(byPrecedence)
      .flatMap(({ metadata, spec }) => {
        const key = objectKey(
          flowcontrolGroup,
          'prioritylevelconfigurations',
          '',
          spec.priorityLevelConfiguration.name,
        );
        const level = this.#storage.get(key)?.object.metadata.uid;
        // One whose level does not exist has no effect (its condition Dangling).
        if (level === undefined) return [];
        const headers = [
          ['X-Kubernetes-Pf-Flowschema-Uid', metadata.uid ?? ''],
          ['X-Kubernetes-Pf-Prioritylevel-Uid', level],
        ] as const;
        return [{ rules: spec.rules ?? [], headers }];
      });
  }
}

interface ClassifyingSchema {
  readonly rules: readonly PolicyRulesWithSubjects[];
  readonly headers: readonly (readonly [name: string, value: string])[];
}

function isFlowSchema(object: object): object is FlowSchema {
  return 'spec' in object && isRecord(object.spec) && isRecord(object.spec['priorityLevelConfiguration']);
}

/** Apimachinery `util/apihelpers` FlowSchemaSequence. */
function byPrecedence(a: FlowSchema, b: FlowSchema): number {
  const order = a.spec.matchingPrecedence - b.spec.matchingPrecedence;
  if (order !== 0) return order;
  return (a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1;
}

/** Apiserver `util/flowcontrol/rule.go`. */
function covers(rule: PolicyRulesWithSubjects, user: UserInfo, info: RequestInfo): boolean {
  if (rule.subjects?.some((subject) => isSubject(subject, user)) !== true) return false;
  if (!info.isResource) {
    return (rule.nonResourceRules ?? []).some(
      ({ verbs, nonResourceURLs }) =>
        has(verbs, info.verb) && nonResourceURLs?.some((url) => isPath(url, info.path)) === true,
    );
  }
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`;
  return (rule.resourceRules ?? []).some(
    ({ verbs, apiGroups, resources, clusterScope = false, namespaces }) =>
      has(verbs, info.verb) &&
      has(resources, resource) &&
      has(apiGroups, info.group) &&
      (info.namespace === '' ? clusterScope : has(namespaces, info.namespace)),
  );
}

function isSubject({ kind, user, group, serviceAccount }: Subject, { name, groups }: UserInfo): boolean {
  switch (kind) {
    case 'User':
      return user?.name === '*' || user?.name === name;
    case 'Group':
      return group?.name === '*' || groups.includes(group?.name ?? '');
    case 'ServiceAccount': {
      const prefix = `system:serviceaccount:${serviceAccount?.namespace ?? ''}:`;
      return serviceAccount?.name === '*'
        ? name.startsWith(prefix)
        : name === `${prefix}${serviceAccount?.name ?? ''}`;
    }
    default:
      return false;
  }
}

function has(list: readonly string[] | null, value: string): boolean {
  return list !== null && (list.includes('*') || list.includes(value));
}

function isPath(url: string, path: string): boolean {
  return url === '*' || url === path || (url.endsWith('*') && path.startsWith(url.slice(0, -1)));
}
