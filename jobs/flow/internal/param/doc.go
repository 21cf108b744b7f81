// Package param finds the parameters of a flow's node: it puts the scopes in their order and resolves what their texts refer to.
//
// ${name}, with a name of letters, digits, underscores and dots, stands for another parameter. It is looked up in all scopes together, so a
// text written in an outer scope sees what an inner one says (late binding). Anything else in braces, like ${my-param}, stays as it is. A
// cycle and an undefined name are errors that tell the chain which led there.
//
// $(expr) is arithmetic, done after all ${} of a text are replaced, innermost first: + - * / % and parentheses on whole numbers, and
// decimals when one side is one. What holds anything else, like the name of a program in $(date +%F), stays as it is. An opening $( without its
// closing parenthesis, and arithmetic that cannot be done, are errors.
//
// Items of a for_each that were taken from an output are data, and so are the lists that a for_each puts out: what looks like a reference or like
// arithmetic in them stays as it is, also where it is put into other texts. A for_each without items has all outputs, empty lists: what is not
// defined in the nodes behind it is [].
//
// From low to high, a node's scopes are: the installation's parameters; the shared .properties (Flow 1.0) or the flow's config (Flow 2.0); the
// run's own; then for each embedded flow that the node is in, from the outermost: outputs of what the embedded flow waits for, its
// config, the properties that the run sets for it; then outputs of the node's parents, later ones first; its own config; the properties that
// the run sets for it; the item of a for_each; and the run-time properties, which nothing overrides.
//
// ${secret.NAME} is no parameter but a secret, which is not known here: it stays in the text as a reference that carries a random mark, for who runs a
// program. Texts of the project and of the installation may lead to secrets, through other parameters too; those of a run, of outputs and of
// items may not, which is an error.
//
// The size of a value and of all of them is bounded, so that texts that double themselves again and again end in an error.
package param
