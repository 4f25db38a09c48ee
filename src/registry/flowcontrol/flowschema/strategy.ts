import type { FlowSchema } from '../../../objects/types/flowcontrol.generated.ts';
import { genericStrategy, specChanges, fillParts } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import { flowStatus } from '../prioritylevelconfiguration/strategy.ts';
import type { Strategy } from '../../generic/strategy.ts';

import { validateFlowSchema } from './validation.ts';

/** The rules of FlowSchemas; they have no effect on requests. */
export const flowSchemaStrategy: Strategy<FlowSchema> = {
  ...genericStrategy<FlowSchema>({
    namespaced: false,
    nameRule: nameIsDNSSubdomain,
    hasStatus: true,
    generationChanges: specChanges,
    setDefaults(schema) {
      fillParts(schema);
      schema.spec.matchingPrecedence ||= 1000;
    },
    validateCreate: validateFlowSchema,
    repeatsCreate: 'instead',
  }),
  status: flowStatus(),
};
