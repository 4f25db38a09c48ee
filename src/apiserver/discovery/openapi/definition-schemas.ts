import type { KubeObject } from '../../../objects/meta.ts';
import { at, listAt, textAt } from '../../../objects/read.ts';
import type { CustomSchema } from './components.ts';

/** Schemas of custom resources from their definitions. @param get reads a CustomResourceDefinition by its name. */
export function definitionSchemas(get: (name: string) => KubeObject | undefined): CustomSchema {
  return ({ plural, group, version }) => {
    const versions = listAt(get(`${plural}.${group}`), 'spec', 'versions');
    const own = versions.find((candidate) => textAt(candidate, 'name') === version);
    return {
      schema: at(own, 'schema', 'openAPIV3Schema'),
      selectableFields: listAt(own, 'selectableFields').map((field) => textAt(field, 'jsonPath')),
    };
  };
}
