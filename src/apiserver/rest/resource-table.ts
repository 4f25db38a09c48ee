import type { ResourceDefinition } from '../../registry/strategy.ts';
import type { ServedResource } from './served-resource.ts';

/** The resources that are served now. Custom resources come and go. */
export class ResourceTable {
  readonly #resources = new Map<string, ServedResource>();
  #version = 0;

  /** Grows with every change: discovery and OpenAPI cache by it. */
  get version(): number {
    return this.#version;
  }

  add(resource: ServedResource): void {
    const { group, version, plural } = resource.definition;
    this.#resources.set(`${group}/${version}/${plural}`, resource);
    this.#version++;
  }

  remove(definition: Pick<ResourceDefinition, 'group' | 'version' | 'plural'>): void {
    if (this.#resources.delete(`${definition.group}/${definition.version}/${definition.plural}`)) this.#version++;
  }

  find(group: string, version: string, plural: string): ServedResource | undefined {
    return this.#resources.get(`${group}/${version}/${plural}`);
  }

  /** In the order in which they were added. */
  all(): readonly ServedResource[] {
    return [...this.#resources.values()];
  }

  /** True when anything is served in the group version. */
  hasGroupVersion(group: string, version: string): boolean {
    const prefix = `${group}/${version}/`;
    for (const key of this.#resources.keys()) if (key.startsWith(prefix)) return true;
    return false;
  }
}
