import type { ResourceDefinition } from '../../registry/generic/strategy.ts';
import type { ServedResource } from './served-resource.ts';

/** The resources that are served now. Custom resources come and go. */
export class ResourceTable {
  readonly #resources = new Map<string, ServedResource>();
  readonly #kinds = new Map<string, ServedResource>();
  #all: readonly ServedResource[] | undefined;
  #version = 0;

  /** Grows with every change: discovery and OpenAPI cache by it. */
  get version(): number {
    return this.#version;
  }

  add(resource: ServedResource): void {
    const { group, version, plural, kind } = resource.definition;
    this.#resources.set(`${group}/${version}/${plural}`, resource);
    this.#kinds.set(`${group}/${version}/${kind}`, resource);
    this.#all = undefined;
    this.#version++;
  }

  remove({
    group,
    version,
    plural,
    kind,
  }: Pick<ResourceDefinition, 'group' | 'version' | 'plural' | 'kind'>): void {
    if (!this.#resources.delete(`${group}/${version}/${plural}`)) return;
    this.#kinds.delete(`${group}/${version}/${kind}`);
    this.#all = undefined;
    this.#version++;
  }

  find(group: string, version: string, plural: string): ServedResource | undefined {
    return this.#resources.get(`${group}/${version}/${plural}`);
  }

  /** The resource of a kind, for objects that name only their kind. */
  ofKind(group: string, version: string, kind: string): ServedResource | undefined {
    return this.#kinds.get(`${group}/${version}/${kind}`);
  }

  /** True for a group that only custom resources are in. */
  isCustomGroup(group: string): boolean {
    const own = this.all().filter(({ definition }) => definition.group === group);
    return own.length > 0 && own.every(({ custom }) => custom);
  }

  /** In the order in which they were added; the same array while nothing changes. */
  all(): readonly ServedResource[] {
    this.#all ??= [...this.#resources.values()];
    return this.#all;
  }

  /** True when anything is served in the group version. */
  hasGroupVersion(group: string, version: string): boolean {
    const prefix = `${group}/${version}/`;
    for (const key of this.#resources.keys()) if (key.startsWith(prefix)) return true;
    return false;
  }
}
