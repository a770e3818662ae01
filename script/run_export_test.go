package script

// MostSteps gives a run fewer steps than MaxStepsRun.
func (o Options) MostSteps(n uint64) Options {
	o.mostSteps = n
	return o
}

// DocExamples are the scripts of the documentation, and the files that they include.
var DocExamples = docExamples
