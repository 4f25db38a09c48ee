import { at, listAt, textAt, textsAt } from '../../objects/read.ts';
import type { DiscoveredResource, SubresourceRow } from '../discovery/discovered-resource.ts';

/**
 * The resources of an APIResourceList, as discovery shows them (apiserver `endpoints/installer.go`,
 * ConvertGroupVersionIntoToDiscovery). Rows without a name are left out.
 */
export function remoteResources(group: string, version: string, list: unknown): DiscoveredResource[] {
  const rows = listAt(list, 'resources');
  return rows.flatMap((row) => {
    const plural = textAt(row, 'name');
    if (plural === '' || plural.includes('/')) return [];
    return [
      {
        group,
        version,
        plural,
        singular: textAt(row, 'singularName'),
        kind: textAt(row, 'kind'),
        namespaced: at(row, 'namespaced') === true,
        shortNames: textsAt(row, 'shortNames'),
        categories: textsAt(row, 'categories'),
        verbs: textsAt(row, 'verbs'),
        schema: '',
        subresources: subresourcesOf(plural, rows),
        custom: true,
      },
    ];
  });
}

function subresourcesOf(plural: string, rows: readonly unknown[]): SubresourceRow[] {
  return rows.flatMap((row) => {
    const name = textAt(row, 'name');
    if (!name.startsWith(`${plural}/`)) return [];
    const kindGroup = textAt(row, 'group');
    const kindVersion = textAt(row, 'version');
    return [
      {
        name: name.slice(plural.length + 1),
        kind: textAt(row, 'kind'),
        verbs: textsAt(row, 'verbs'),
        ...(kindGroup === '' && kindVersion === '' ? {} : { kindGroup, kindVersion }),
      },
    ];
  });
}
