import type { KubeObject } from '../../../objects/meta.ts';

/** Core/v1 ResourceQuota. */
export interface ResourceQuota extends KubeObject {
  spec: {
    hard?: Record<string, string>;
    scopes?: string[];
    scopeSelector?: { matchExpressions?: ScopeRequirement[] };
  };
  status: { hard?: Record<string, string>; used?: Record<string, string> };
}

/** One of `spec.scopeSelector.matchExpressions`. */
export interface ScopeRequirement {
  scopeName?: string;
  operator?: string;
  values?: string[];
}
