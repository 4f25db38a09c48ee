/**
 * A number of time says its unit in its name: `Ms` or `Seconds`. Reported is one without a unit whose comment begins with
 * it, and one that a timer gets. A TTL is in seconds everywhere (RFC 1035).
 *
 * @type {import('eslint').Rule.RuleModule}
 */
export const units = {
  meta: {
    type: 'suggestion',
    schema: [],
    messages: {
      unit: '"{{name}}" is a time: its name ends in Ms or Seconds',
      milliseconds: '"{{name}}" is in milliseconds: its name ends in Ms',
    },
  },
  create(context) {
    /** @param {any} type @returns {boolean} */
    const isNumber = (type) =>
      type?.type === 'TSNumberKeyword' || (type?.type === 'TSUnionType' && type.types.some(isNumber));

    /** @param {any} value */
    const isNumeric = (value) => value?.type === 'Literal' && typeof value.value === 'number';

    /** @param {any} node behind its comment. @param {any} named @param {any} value @param {any} [type] */
    const declared = (node, named, value, type) => {
      const name = named.name;
      if (typeof name !== 'string' || /(?:ms|seconds|ttl)$/i.test(name)) return;
      if (!isNumber(type?.typeAnnotation) && !isNumeric(value)) return;
      const comment = context.sourceCode.getCommentsBefore(node).at(-1)?.value ?? '';
      if (/^\*?\s*(?:Milliseconds|Seconds)\b/.test(comment)) {
        context.report({ node, messageId: 'unit', data: { name } });
      }
    };

    /** @param {any} node what a timer gets. */
    const timed = (node) => {
      const name = node?.type === 'MemberExpression' && !node.computed ? node.property.name : node?.name;
      if (
        typeof name === 'string' &&
        name !== 'undefined' &&
        !/^(?:ms|milliseconds)$|Ms$|Milliseconds$/.test(name)
      ) {
        context.report({ node, messageId: 'milliseconds', data: { name } });
      }
    };

    return {
      TSPropertySignature: (/** @type {any} */ node) =>
        declared(node, node.key, undefined, node.typeAnnotation),
      PropertyDefinition: (/** @type {any} */ node) =>
        declared(node, node.key, node.value, node.typeAnnotation),
      Property: (/** @type {any} */ node) => declared(node, node.key, node.value),
      VariableDeclaration: (/** @type {any} */ node) => {
        const [{ id, init }] = node.declarations;
        const outer = node.parent.type === 'ExportNamedDeclaration' ? node.parent : node;
        declared(outer, id, init, id.typeAnnotation);
      },
      CallExpression: (/** @type {any} */ { callee, arguments: given }) => {
        const name = callee.type === 'MemberExpression' ? callee.property.name : callee.name;
        if (name === 'setTimeout' || name === 'setInterval') timed(given[1]);
        // Of `node:timers/promises`, and of our clocks.
        else if (name === 'sleep' || callee.name === 'delay') timed(given[0]);
        else if (name === 'timeout' && callee.object?.name === 'AbortSignal') timed(given[0]);
      },
    };
  },
};
